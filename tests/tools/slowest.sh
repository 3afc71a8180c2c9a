#!/usr/bin/env bash
# Prints the five source files of a build that took the longest to compile, and a warning for one
# that took longer than the limit. Never an error: seconds on the clock say little on a machine that
# does other work too.
#
#   tests/tools/slowest.sh BUILD_DIR [LIMIT_SECONDS]
set -euo pipefail

build=$1
limit=${2:-60}
log=$build/.ninja_log
if [[ ! -f $log ]]; then
  echo "$log: no such file; was $build built with ninja?" >&2
  exit 2
fi

# Columns: start and end in milliseconds, time stamp, output, hash. The last line of an output counts.
listing=$(awk -F'\t' '!/^#/ && $4 ~ /\.o$/ { took[$4] = $2 - $1 }
  END { for (o in took) printf "%.1f %s\n", took[o] / 1000, o }' "$log" |
  sort -rn | sed -n 1,5p)
if [[ -z $listing ]]; then
  echo "$log: nothing was compiled" >&2
  exit 2
fi
echo "Slowest to compile, in seconds:"
while read -r seconds object; do
  printf '  %7s  %s\n' "$seconds" "${object#CMakeFiles/}"
done <<<"$listing"
while read -r seconds object; do
  if awk -v s="$seconds" -v l="$limit" 'BEGIN { exit !(s > l) }'; then
    echo "warning: $object took more than $limit s: split it or hide a heavy header"
  fi
done <<<"$listing"
