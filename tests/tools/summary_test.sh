#!/usr/bin/env bash
# The summary counts every outcome that ctest knows, and fails when nothing ran.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

{
  printf '<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="x"\n\ttests="7"\n\t>\n'
  printf '\t<testcase name="good &amp; &lt;quick&gt;" classname="x" time="0" status="run">\n'
  printf '\t\t<system-out>SKIPPED: but it ran</system-out>\n\t</testcase>\n'
  printf '\t<testcase name="bad" classname="x" time="0" status="fail">\n'
  printf '\t\t<failure message=""/>\n\t\t<system-out></system-out>\n\t</testcase>\n'
  printf '\t<testcase name="absent" classname="x" time="0" status="notrun">\n'
  printf '\t\t<skipped message="Unable to find executable"/>\n'
  printf '\t\t<system-out>gone</system-out>\n\t</testcase>\n'
  printf '\t<testcase name="left out" classname="x" time="0" status="notrun">\n'
  printf '\t\t<skipped message="SKIP_RETURN_CODE=77"/>\n'
  printf '\t\t<system-out>  SKIPPED: no &quot;docker&quot; &amp; no network</system-out>\n'
  printf '\t</testcase>\n</testsuite>\n'
} >"$work/results.xml"

{
  printf ' 1/4 Test #9: good & <quick> ...............***Failed    0.42 sec\n'
  printf '      Start  2: bad\n'
  printf ' 2/4 Test #2: bad ..........................***Timeout   9.00 sec\n'
} >"$work/tests.log"

expected='
Skipped:
  left out: no "docker" & no network

Passed only when run again:
  good & <quick>

Failed:
  bad
  absent: Unable to find executable

1 passed, 2 failed, 1 skipped'
if actual=$(awk -f "$here/summary.awk" "$work/tests.log" "$work/results.xml"); then
  echo "failed tests gave exit code 0"
  exit 1
fi
if [[ $actual != "$expected" ]]; then
  diff <(echo "$expected") <(echo "$actual")
  exit 1
fi

if actual=$(awk -f "$here/summary.awk" </dev/null); then
  echo "no test at all gave exit code 0"
  exit 1
fi
[[ $(tail -n 1 <<<"$actual") == "0 passed, 0 failed" ]]
