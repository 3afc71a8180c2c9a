#!/usr/bin/env bash
# Checks the format of the files that changed (all files with --all); "N passed, N failed" at the end.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ ${1:-} == --all ]]; then
  mapfile -t files < <(git ls-files -- '*.c' '*.cpp' '*.h' '*.hpp')
else
  mapfile -t files < <(tests/tools/changed.sh)
fi
failed=0
for file in "${files[@]}"; do
  clang-format-14 --style=file --dry-run --Werror "$file" || failed=$((failed + 1))
done
echo "$((${#files[@]} - failed)) passed, $failed failed"
[[ $failed -eq 0 ]]
