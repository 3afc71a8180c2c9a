#!/usr/bin/env bash
# Compares the rows of tests/contract/coverage.txt with the cases of the conformance suite and the
# tags of the test cases: a row without a case, a test or a reason, and an id or a tag that is no row,
# are mistakes. The case `cases.A02.bytes` belongs to the row `cases.A02`.
#
#   tests/tools/coverage.sh [--table] [TREE]     TREE is the source tree, this one by default
set -euo pipefail

table=0
if [[ ${1:-} == --table ]]; then
  table=1
  shift
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(cd "${1:-$here/../..}" && pwd)
rows=$tree/tests/contract/coverage.txt

mapfile -t sources < <(cd "$tree" && find tests -name '*_test.cpp' | sort;
                       find sdk/conformance -name '*.json' 2>/dev/null | sort)
cd "$tree"
awk -v table="$table" -v rows="$rows" '
  # The rows.
  FILENAME == rows {
    sub(/[ \t\r]+$/, "")
    if ($0 == "" || /^#/) next
    id = $1
    if (id in known) bad("named twice: " id)
    known[id] = 1
    order[++count] = id
    if (NF > 1 && ($2 != "-" || NF < 3)) bad("not of the form ID - REASON: " $0)
    if (NF > 2) { reason[id] = $0; sub(/^[^ ]+ - /, "", reason[id]) }
    next
  }
  # The ids of the suite.
  FILENAME ~ /\.json$/ {
    if (/"steps": *\[\{"call": *"capabilities.not_in_core_yet"\}\]/) next  # it shows nothing
    while (match($0, /"id": *"[^"]*"/)) {
      id = substr($0, RSTART, RLENGTH)
      sub(/^"id": *"/, "", id)
      sub(/"$/, "", id)
      $0 = substr($0, RSTART + RLENGTH)
      row = id
      if (split(id, part, ".") > 2) row = part[1] "." part[2]
      shown[row] = shown[row] "\n    " FILENAME ": " id
    }
    next
  }
  # The heads of test cases: name and tags, up to the brace.
  FNR == 1 { head = "" }
  /^ *(TEST_CASE|TEST_CASE_METHOD|SCENARIO|TEMPLATE_TEST_CASE)\(/ { head = " " }
  head != "" {
    head = head $0
    if (/\{ *$/) { read_head(head); head = "" }
  }
  function bad(what) { print "coverage: " what; mistakes++ }
  function read_head(text,   name, rest, id) {
    name = text
    sub(/^[^"]*"/, "", name)
    rest = name
    sub(/".*/, "", name)
    while (match(rest, /\[(cases|contract)\.[A-Za-z0-9_]+\]/)) {
      id = substr(rest, RSTART + 1, RLENGTH - 2)
      rest = substr(rest, RSTART + RLENGTH)
      shown[id] = shown[id] "\n    " FILENAME ": " name
    }
  }
  END {
    for (i = 1; i <= count; i++) {
      id = order[i]
      if (!(id in shown) && !(id in reason)) bad("no test shows " id)
      if (id in shown && id in reason) bad(id " is shown, and has a reason why not")
      if (table) print id (id in reason ? "  not applicable: " reason[id] : shown[id])
    }
    for (id in shown)
      if (!(id in known)) bad("no row of that name: [" id "] in" shown[id])
    if (count == 0) bad("there are no rows")
    if (!mistakes) print count " rows, each with a test or a reason"
    exit mistakes ? 1 : 0
  }' "$rows" "${sources[@]}"
