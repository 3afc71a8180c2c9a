#!/usr/bin/env bash
# Every public C++ header has a test file that includes it before anything else: it then needs
# nothing that somebody else happened to include, and somebody has thought of testing it.
# tests/tools/header_tests.txt lists those without one, with the reason.
#
#   tests/tools/header_tests.sh [TREE]     TREE is the source tree, this one by default
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "${1:-$here/../..}"

# NAME as an #include gives it, for each header below FOLDER.
headers_of() {
  [[ ! -d $1 ]] || (cd "$1" && find . \( -name '*.h' -o -name '*.hpp' \) | sed 's|^\./||' | sort)
}

first_includes=$(find tests -name '*.cpp' -exec awk '
  /^#include/ { gsub(/["<>]/, "", $2); print $2; nextfile }' {} + | sort -u)

mistakes=0
count=0
for folder in core/include sdk/include sdk/support/include sdk/posix/include sdk/wire/*/include; do
  while read -r header; do
    [[ -n $header ]] || continue
    count=$((count + 1))
    tested=0 excused=0
    grep -qxF "$header" <<<"$first_includes" && tested=1
    # RULE # REASON; a rule that ends in a slash is all below it.
    while read -r rule hash reason; do
      [[ -n $rule && $rule != '#'* ]] || continue
      if [[ $hash != '#' || -z $reason ]]; then
        echo "header_tests.txt: not of the form HEADER # REASON: $rule"
        exit 1
      fi
      [[ $header == "$rule" || ($rule == */ && $header == "$rule"*) ]] && excused=1
    done <tests/tools/header_tests.txt
    if ((!tested && !excused)); then
      echo "no test file includes it first: $header ($folder)"
      mistakes=$((mistakes + 1))
    fi
  done < <(headers_of "$folder")
done
if ((count == 0)); then
  echo "no header was found"
  exit 1
fi
echo "$count headers, $mistakes without a test"
((mistakes == 0))
