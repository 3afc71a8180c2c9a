#!/usr/bin/env bash
# Runs every fuzz target for a while and ends with the line "N passed, N failed".
#
#   tests/fuzz/run.sh [SECONDS [NAME …]]     30 seconds and all targets by default
#
# The targets must be built (cmake --preset fuzz && cmake --build --preset fuzz; another folder
# than build/fuzz goes into FUZZ_BUILD). Each one starts from a copy of corpus/NAME, so the seeds
# stay as they are; one without seeds fails. An input that fails is kept in build/fuzz/failures.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${FUZZ_BUILD:-$here/../../build/fuzz}
seconds=${1:-30}
[[ $# -eq 0 ]] || shift
names=("$@")
if [[ ${#names[@]} -eq 0 ]]; then
  shopt -s nullglob
  for source in "$here"/*_fuzz.cpp; do
    names+=("$(basename "$source" .cpp)")
  done
fi
if [[ ${#names[@]} -eq 0 ]]; then
  echo "there is no fuzz target" >&2
  echo "0 passed, 0 failed"
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=$build/failures
mkdir -p "$failures"
failures=$(cd "$failures" && pwd)

seeds_of() { find "$here/corpus/$1" -type f 2>/dev/null | wc -l || :; }

fuzz() {
  local name=$1 program options=()
  program=$(find "$build" -type f -name "$name" -perm -u+x | head -n 1)
  if [[ -z $program ]]; then
    echo "not built" >"$work/$name.log"
    return 1
  fi
  program=$(realpath "$program")
  if [[ $(seeds_of "$name") -eq 0 ]]; then
    echo "there are no seeds in corpus/$name" >"$work/$name.log"
    return 1
  fi
  cp -r "$here/corpus/$name" "$work/$name"
  [[ ! -f $here/corpus/$name.dict ]] || options+=("-dict=$here/corpus/$name.dict")
  # A target may be slow under load, but an input that takes 20 s on its own is a finding.
  "$program" "$work/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
    -max_len=65536 -print_final_stats=1 -artifact_prefix="$failures/$name-" "${options[@]}" \
    >"$work/$name.log" 2>&1
}

run_one() {
  local name=$1 seeds executed
  seeds=$(seeds_of "$name")
  if fuzz "$name"; then
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log")
    # A target that executed next to nothing has shown nothing.
    if [[ ${executed:-0} -gt $seeds ]]; then
      echo "passed: $name ($seeds seeds, $executed inputs)"
      : >"$work/$name.passed"
      return
    fi
  fi
  echo "FAILED: $name"
  tail -n 60 "$work/$name.log"
}

for name in "${names[@]}"; do
  while [[ $(jobs -rp | wc -l) -ge $(nproc) ]]; do
    wait -n || true
  done
  run_one "$name" &
done
wait

passed=$(find "$work" -name '*.passed' | wc -l)
failed=$((${#names[@]} - passed))
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
