#!/usr/bin/env bash
# Runs clang-tidy on the sources that changed, the latest first, and ends with the line
# "N passed, N failed, N skipped".
#
#   tests/tools/tidy.sh [BUDGET_SECONDS [FILE …]]
#
# After the budget (480 s) no further file is begun; those left are counted as skipped.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
budget=${1:-480}
[[ $# -eq 0 ]] || shift
files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  mapfile -t files < <(tests/tools/changed.sh | grep -E '\.(c|cpp)$' || true)
fi
# A configuration of its own, in which every file has its compile command; nothing is built.
commands=build/tidy
cmake --preset dev -B "$commands" -DSANDFORGE_UNITY=OFF >/dev/null

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tidy() {
  local file=$1 result
  result=$(mktemp "$work/XXXXXX")
  if ((SECONDS > budget)) || ! grep -qF "/$file\"" "$commands/compile_commands.json"; then
    mv "$result" "$result.skipped"
  elif ! clang-tidy-14 -p "$commands" --quiet --extra-arg=-Wno-unknown-warning-option "$file" \
    >"$result" 2>&1; then
    mv "$result" "$result.failed"
  fi
}

for file in "${files[@]}"; do
  while [[ $(jobs -rp | wc -l) -ge $(nproc) ]]; do
    wait -n || true
  done
  tidy "$file" &
done
wait

failed=0
skipped=0
for result in "$work"/*; do
  case $result in
    *.failed)
      grep -E '(error|warning): ' "$result" || cat "$result"
      failed=$((failed + 1))
      ;;
    *.skipped) skipped=$((skipped + 1)) ;;
  esac
done
[[ $skipped -eq 0 ]] || echo "not checked, for lack of time or of a compile command: $skipped files"
echo "$((${#files[@]} - failed - skipped)) passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
