# Reads the JUnit file that ctest writes; prints the skipped tests with their reasons, the failed
# ones, and as the last line "N passed, N failed" with ", N skipped" where there are some.
# The variable `also` names a fault that no test of the file tells. What ctest printed may come
# before the JUnit file: then tests that passed only when they were run again are named too.
# Exit code 1 when a test failed or none ran.

function attribute(line, name,    text) {
  if (!match(line, " " name "=\"[^\"]*\"")) return ""
  text = substr(line, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
  return plain(text)
}
function plain(text) {
  gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text)
  gsub(/&quot;/, "\"", text); gsub(/&amp;/, "\\&", text)
  return text
}

/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / && /\*\*\*(Failed|Timeout|Exception)/ {
  line = $0
  sub(/^[^:]*: /, "", line)
  sub(/ \.*\*\*\*.*$/, "", line)
  failed_once[line]
}
/^\t<testcase / {
  name = attribute($0, "name"); status = attribute($0, "status"); message = ""; reason = ""
}
/^\t\t<skipped / { message = attribute($0, "message") }
reason == "" && match($0, /(SKIPPED|skipped): .*/) {
  reason = plain(substr($0, RSTART + 9))
  sub(/<\/system-out>$/, "", reason)
}
/^\t<\/testcase>/ {
  if (status == "run") {
    passed++
    if (name in failed_once) agains[again++] = name
  } else if (status == "disabled") {
    skips[skipped++] = name ": disabled"
  } else if (status == "notrun" && message ~ /^SKIP_/) {
    skips[skipped++] = name ": " (reason == "" ? "no reason given" : reason)
  } else {
    fails[failed++] = name (message == "" ? "" : ": " message)
  }
}
END {
  if (also != "") fails[failed++] = also
  if (skipped) print "\nSkipped:"
  for (i = 0; i < skipped; i++) print "  " skips[i]
  if (again) print "\nPassed only when run again:"
  for (i = 0; i < again; i++) print "  " agains[i]
  if (failed) print "\nFailed:"
  for (i = 0; i < failed; i++) print "  " fails[i]
  print ""
  printf "%d passed, %d failed", passed, failed
  if (skipped) printf ", %d skipped", skipped
  print ""
  exit failed > 0 || passed == 0
}
