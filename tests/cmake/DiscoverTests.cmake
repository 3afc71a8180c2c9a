# Lists the cases of one Catch2 program and writes them as ctest tests. Run after linking.
# Stricter than the module of Catch2, which takes a crash of the listing for "no tests".

set(ENV{ASAN_OPTIONS} detect_leaks=0)
file(REMOVE ${LIST})
execute_process(
  COMMAND ${EMULATOR} ${PROGRAM} --list-test-names-only
  WORKING_DIRECTORY ${DIRECTORY}
  OUTPUT_VARIABLE names RESULT_VARIABLE count ERROR_VARIABLE errors)
# The exit code is the number of cases, at most 255; a word instead of a number is a signal.
if(NOT count MATCHES "^[1-9][0-9]*$" OR errors)
  message(FATAL_ERROR "${NAME}: cannot list its test cases (${count}):\n${names}${errors}")
endif()
if(names MATCHES ";")
  message(FATAL_ERROR "${NAME}: a test name holds a semicolon, which ctest cannot pass on")
endif()

set(properties "WORKING_DIRECTORY [==[${DIRECTORY}]==] TIMEOUT ${TIMEOUT}")
# As Catch2 prints WARN("SKIPPED: why") in a case of which nothing failed, and at the very end: a case
# that fails as well, or a sanitizer that finds fault with it, is a failure.
string(APPEND properties " SKIP_REGULAR_EXPRESSION [==[warning:\n *(SKIPPED|skipped): "
  ".*(All tests passed \\([^)]*\\)|assertions: - none -)[ \n]*$]==]")
if(LABELS)
  string(APPEND properties " LABELS [==[${LABELS}]==]")
endif()
if(ENVIRONMENT)
  string(APPEND properties " ENVIRONMENT [==[${ENVIRONMENT}]==]")
endif()
if(LOCK)
  string(APPEND properties " RESOURCE_LOCK [==[${LOCK}]==]")
endif()
if(SERIAL)
  string(APPEND properties " RUN_SERIAL ON")
endif()
set(prefix "")
foreach(word IN LISTS EMULATOR)
  string(APPEND prefix " [==[${word}]==]")
endforeach()

set(script "")
set(found 0)
while(names MATCHES "^([^\n]*)\n")
  set(line "${CMAKE_MATCH_1}")
  string(LENGTH "${line}" length)
  math(EXPR length "${length} + 1")
  string(SUBSTRING "${names}" ${length} -1 names)
  if(line STREQUAL "")
    continue()
  endif()
  # Catch2 reads commas, brackets and backslashes of a name as its own syntax.
  string(REPLACE "\\" "\\\\" pattern "${line}")
  foreach(char "," "[" "]")
    string(REPLACE "${char}" "\\${char}" pattern "${pattern}")
  endforeach()
  string(APPEND script
    "add_test([==[${NAME}: ${line}]==]${prefix} [==[${PROGRAM}]==] [==[${pattern}]==] -w NoTests)\n"
    "set_tests_properties([==[${NAME}: ${line}]==] PROPERTIES ${properties})\n")
  math(EXPR found "${found} + 1")
endwhile()
if(found EQUAL 0 OR (count LESS 255 AND NOT found EQUAL count))
  message(FATAL_ERROR "${NAME}: says it has ${count} test cases, but lists ${found}")
endif()
file(WRITE ${LIST} "${script}")
