#!/usr/bin/env bash
# The header matrix must fail for a header that is no C, and for a tree without headers.
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
