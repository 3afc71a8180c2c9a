#!/usr/bin/env bash
# Builds the release preset and measures the bars, each against its peer of the same run:
#   tests/bench/run.sh [--quick] [--json FILE] [--jobs N] [GROUP …]
#
#   --quick  a look in seconds; its numbers are rough
#   --json   the same as a document
#   --jobs   compilers at a time; default: one per core
#   GROUP    local, guest, boundary, load, schema, cold, runner; all by default
#
# A goal that is not met shows in the table and is no failure: exit code 0 when all was measured.
# Packages: hosts/quickstart.sh --print-packages, and libbenchmark-dev.
set -euo pipefail

words=()
jobs=$(nproc)
while [[ $# -gt 0 ]]; do
  case $1 in
    --help)
      sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --jobs)
      jobs=${2:?--jobs needs a number}
      shift
      ;;
    --json)
      # The program runs from another folder.
      words+=(--json "$(realpath -m "${2:?--json needs a file}")")
      shift
      ;;
    *) words+=("$1") ;;
  esac
  shift
done

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
{
  cmake --preset release
  cmake --build build/release --target sandforge_bench -j "$jobs"
} >&2
exec build/release/tests/bench/sandforge_bench "${words[@]}"
