#!/usr/bin/env bash
# Both checks pass on this tree, and notice what they are there for.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$here/coverage.sh"
"$here/header_tests.sh"

fails() {
  local expected=$1
  shift
  local text
  if text=$("$@"); then
    echo "not noticed: $expected"
    exit 1
  fi
  if [[ $text != *"$expected"* ]]; then
    echo "expected: $expected"
    echo "$text"
    exit 1
  fi
}

mkdir -p "$work/tests/contract" "$work/tests/tools" "$work/core/include/sandforge"
rows=$work/tests/contract/coverage.txt
test=$work/tests/contract/a_test.cpp
printf 'cases.A01\ncases.A02 - there is no such thing here\n' >"$rows"
printf '#include "sandforge/a.hpp"\n#include "sandforge/b.hpp"\n' >"$test"
printf 'TEST_CASE_METHOD(Fixture,\n    "one (of two)",\n    "[x][cases.A01]") {\n}\n' >>"$test"
"$here/coverage.sh" "$work" >"$work/out"
[[ $("$here/coverage.sh" --table "$work") == *"cases.A01
    tests/contract/a_test.cpp: one (of two)
cases.A02  not applicable: there is no such thing here"* ]]

echo 'cases.A03' >>"$rows"
fails "no test shows cases.A03" "$here/coverage.sh" "$work"
printf 'cases.A02 - because\n' >"$rows"
fails "no row of that name: [cases.A01]" "$here/coverage.sh" "$work"
printf 'cases.A01 - because\n' >"$rows"
fails "cases.A01 is shown, and has a reason why not" "$here/coverage.sh" "$work"
printf 'cases.A01 -\n' >"$rows"
fails "not of the form" "$here/coverage.sh" "$work"
# Not a tag: a comment, or text in a body.
printf 'cases.A01\ncases.A02\n' >"$rows"
printf '// [cases.A02]\nvoid f() {\n  g("[cases.A02]");\n}\n' >>"$test"
fails "no test shows cases.A02" "$here/coverage.sh" "$work"

# A case of the suite, on a line of its own or not, shows its row.
mkdir -p "$work/sdk/conformance"
printf '{"cases":[{"id": "cases.A02.more", "about": "x"},\n {\n"id": "cases.A03"}]}\n' \
  >"$work/sdk/conformance/a.json"
fails "no row of that name: [cases.A03]" "$here/coverage.sh" "$work"
echo 'cases.A03' >>"$rows"
"$here/coverage.sh" "$work" >"$work/out"
rm -r "$work/sdk"

echo '# none' >"$work/tests/tools/header_tests.txt"
touch "$work/core/include/sandforge/a.hpp"
"$here/header_tests.sh" "$work" >"$work/out"
touch "$work/core/include/sandforge/b.hpp"
fails "no test file includes it first: sandforge/b.hpp" "$here/header_tests.sh" "$work"
echo 'sandforge/b.hpp # because' >"$work/tests/tools/header_tests.txt"
"$here/header_tests.sh" "$work" >"$work/out"
echo 'sandforge/b.hpp' >"$work/tests/tools/header_tests.txt"
fails "not of the form" "$here/header_tests.sh" "$work"
