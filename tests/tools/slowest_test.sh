#!/usr/bin/env bash
# The check of compile times: the last time of an object counts, a slow one fails on an idle
# machine and warns on a busy one.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

printf '# ninja log v5\n0\t90000\t1\told.cpp.o\ta\n0\t70500\t1\tslow.cpp.o\tb\n' >"$work/.ninja_log"
printf '0\t1000\t1\told.cpp.o\tc\n0\t99000\t1\tlibx.a\td\n' >>"$work/.ninja_log"
echo "0.10 0.10 0.10 1/100 1" >"$work/idle"
echo "99.00 99.00 99.00 1/100 1" >"$work/busy"

fail() {
  echo "$1: $output"
  exit 1
}
if output=$("$here/slowest.sh" "$work" 60 "$work/idle"); then fail "a slow file passed"; fi
grep -q 'error: slow.cpp.o took 70.5 s' <<<"$output" || fail "the slow file is not named"
! grep -q 'libx.a' <<<"$output" || fail "a link was taken for a compilation"
output=$("$here/slowest.sh" "$work" 60 "$work/busy") || fail "a slow file failed on a busy machine"
grep -q 'warning: slow.cpp.o' <<<"$output" || fail "no warning on a busy machine"
output=$("$here/slowest.sh" "$work" 80 "$work/idle") || fail "a fast build failed"
if output=$("$here/slowest.sh" "$work/nowhere" 2>&1); then fail "a build that is not there passed"; fi
