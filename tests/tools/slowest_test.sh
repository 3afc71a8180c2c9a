#!/usr/bin/env bash
# The report of compile times: the last time of an object counts, a slow one is named.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

printf '# ninja log v5\n0\t90000\t1\told.cpp.o\ta\n0\t70500\t1\tslow.cpp.o\tb\n' >"$work/.ninja_log"
printf '0\t1000\t1\told.cpp.o\tc\n0\t99000\t1\tlibx.a\td\n' >>"$work/.ninja_log"

fail() {
  echo "$1: $output"
  exit 1
}
output=$("$here/slowest.sh" "$work" 60) || fail "the report failed"
grep -q '70.5  slow.cpp.o' <<<"$output" || fail "the slow file is not listed"
grep -q 'warning: slow.cpp.o took' <<<"$output" || fail "no warning for the slow file"
! grep -q 'warning: old.cpp.o' <<<"$output" || fail "a time that is over counts"
! grep -q 'libx.a' <<<"$output" || fail "a link was taken for a compilation"
output=$("$here/slowest.sh" "$work" 80) || fail "the report failed"
! grep -q 'warning' <<<"$output" || fail "a warning for a fast build"
if output=$("$here/slowest.sh" "$work/nowhere" 2>&1); then fail "a build that is not there passed"; fi
