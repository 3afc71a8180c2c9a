#!/usr/bin/env bash
# The header matrix must fail for a header that is no C, and for a tree without headers; what a
# missing compiler did not try is counted.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/sdk/include/sandforge"
if output=$("$here/run.sh" "$work"); then
  echo "a tree without headers passed: $output"
  exit 1
fi

echo 'struct widget { widget *next; };' >"$work/sdk/include/sandforge/abi.h"
if output=$("$here/run.sh" "$work"); then
  echo "a header that is no C passed: $output"
  exit 1
fi
grep -q 'FAILED: sandforge/abi.h with gcc -std=c11' <<<"$output"
# As C++ it is fine: the standards are told apart.
if grep -q 'FAILED: .*g++' <<<"$output"; then
  echo "$output"
  exit 1
fi

# g++ alone, as where clang is not installed.
mkdir "$work/bin"
ln -s /usr/bin/* "$work/bin/"
rm -f "$work"/bin/clang*
echo 'typedef int number;' >"$work/sdk/include/sandforge/abi.h"
output=$(PATH=$work/bin "$here/run.sh" "$work")
grep -q '^  clang-14 is not installed: 2 compilations$' <<<"$output"
grep -q '^6 passed, 0 failed, 6 skipped$' <<<"$output"
