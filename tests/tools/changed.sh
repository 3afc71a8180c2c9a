#!/usr/bin/env bash
# Prints the C and C++ files that changed against the merge base with the main branch; on the main
# branch itself, in the last 20 commits. What changed last comes first.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
head=$(git rev-parse HEAD)
base=
for branch in origin/main main; do
  if merge=$(git merge-base HEAD "$branch" 2>/dev/null) && [[ $merge != "$head" ]]; then
    base=$merge
    break
  fi
done
if [[ -z $base ]]; then
  # A history that is shorter than that is taken whole.
  base=$(git rev-parse -q --verify 'HEAD~20^{commit}' || git hash-object -t tree /dev/null)
fi

names=(-- '*.c' '*.cpp' '*.h' '*.hpp')
{
  git diff --name-only --diff-filter=d "$base" "${names[@]}"
  echo  # between what changed at all, and the order of the changes
  git log --format= --name-only -n 400 "${names[@]}"
} | awk 'NF == 0 && !ordering { ordering = 1; next }
  !ordering { changed[$0] = 1; next }
  $0 in changed && !shown[$0]++
  END { for (path in changed) if (!shown[path]) print path }'
