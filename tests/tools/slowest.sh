#!/usr/bin/env bash
# Prints the five source files of a build that took the longest to compile.
#
#   tests/tools/slowest.sh BUILD_DIR [LIMIT_SECONDS [LOADAVG_FILE]]
#
# Exit code 1 when one took longer than the limit (60 by default). Seconds on the clock say little
# on a machine that does other work too, so there it is a warning only.
set -euo pipefail

build=$1
limit=${2:-60}
loadavg=${3:-/proc/loadavg}
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

read -r seconds object <<<"$listing"
if awk -v s="$seconds" -v l="$limit" 'BEGIN { exit !(s > l) }'; then
  # A build of our own keeps one job per core (and one starting) busy.
  cores=$(nproc)
  load=$(cut -d ' ' -f 2 "$loadavg")
  if awk -v a="$load" -v c="$cores" 'BEGIN { exit !(a > c + 1.5) }'; then
    echo "warning: $object took $seconds s (limit $limit s), on a machine with load $load"
  else
    echo "error: $object took $seconds s, more than $limit s: split it or hide a heavy header"
    exit 1
  fi
fi
