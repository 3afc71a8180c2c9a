#!/usr/bin/env bash
# From a fresh Debian 12 to the result of all tests: installs what they need, configures, builds,
# runs, and ends with the line "N passed, N failed" (", N skipped" where there are some).
#
#   tests/run.sh [--preset NAME] [--label NAME] [--no-install] [--jobs N] [STAGE …]
#
#   STAGE         install, configure, build, test; all four by default
#   --preset      dev (default), asan, tsan, release, coverage
#   --label       only the programs and tests of this label, such as threads
#   --no-install  leave the packages alone
#   --jobs        compilers at a time, and half of the tests; default: one per core, and 2 GiB of
#                 memory each
#
# Run as root, or as a user who may use sudo (for the packages only). Exit code 0 only when a test
# ran and none failed.
set -euo pipefail

test_packages=(
  catch2 libbenchmark-dev procps util-linux openssl python3-minimal
  docker.io iptables busybox-static  # an engine for the tests of docker
)

usage() {
  sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

default_jobs() {
  local memory_kib jobs
  memory_kib=$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)
  jobs=$((memory_kib / (2 * 1024 * 1024)))
  ((jobs <= $(nproc))) || jobs=$(nproc)
  ((jobs >= 1)) || jobs=1
  echo "$jobs"
}

preset=dev
label=
install=yes
jobs=$(default_jobs)
stages=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --preset | --label | --jobs)
      [[ $# -ge 2 ]] || usage
      printf -v "${1#--}" '%s' "$2"
      shift
      ;;
    --no-install) install=no ;;
    install | configure | build | test) stages+=("$1") ;;
    *) usage ;;
  esac
  shift
done
[[ ${#stages[@]} -gt 0 ]] || stages=(install configure build test)

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# One language for the messages of compilers, by which ccache tells its entries apart.
unset "${!LC_@}"
export LANG=C.UTF-8
build=build/$preset

stage_install() {
  [[ $install == yes ]] || return 0
  local packages
  mapfile -t packages < <(hosts/quickstart.sh --print-packages)
  tests/tools/apt_install.sh "${packages[@]}" "${test_packages[@]}"
}

# Warnings are errors where there is no instrumentation: sanitizers make gcc warn where nothing is.
# The benchmarks are built, and looked at by a test, in the same preset.
stage_configure() {
  local strict=OFF
  [[ $preset != dev ]] || strict=ON
  cmake --preset "$preset" "-DSANDFORGE_WERROR=$strict" "-DSANDFORGE_BUILD_BENCH=$strict"
}

stage_build() {
  local target=all
  [[ -z $label ]] || target=tests-$label
  cmake --build "$build" --target "$target" -j "$jobs"
  tests/tools/slowest.sh "$build"
}

stage_test() {
  local results=$PWD/$build/results.xml output=$build/tests.log only=() also=
  [[ -z $label ]] || only=(-L "^$label\$")
  rm -f "$results"
  # In CI a test that fails is run once more, so that a stall of a shared machine is no failure: the
  # summary names it.
  local again=()
  [[ -z ${CI:-} ]] || again=(--repeat until-pass:2)
  # Most tests wait for processes more than they compute.
  ctest --test-dir "$build" -j "$((2 * jobs))" --output-on-failure --no-tests=error "${again[@]}" \
    --output-junit "$results" "${only[@]}" </dev/null | tee "$output" || true
  [[ -f $results ]] || results=/dev/null
  # A report of a sanitizer is a fault, whatever the second run says: only failed tests are printed.
  if grep -qE 'WARNING: ThreadSanitizer|ERROR: (Address|Leak)Sanitizer|: runtime error: ' "$output"; then
    also="a sanitizer's report (see the failed tests above)"
  fi
  awk -v "also=$also" -f tests/tools/summary.awk "$output" "$results"
}

for stage in "${stages[@]}"; do
  printf '\n==> %s (%s)\n' "$stage" "$preset"
  began=$SECONDS
  # Not as a condition: that would let the stage go on after a command that failed.
  set +e
  (set -e && "stage_$stage")
  code=$?
  set -e
  if [[ $stage != test ]]; then
    echo "$stage took $((SECONDS - began)) s"
  fi
  if [[ $code -ne 0 ]]; then
    # The closing line is the summary of the tests; another stage that fails counts as one.
    [[ $stage == test ]] || echo "0 passed, 1 failed"
    exit 1
  fi
done
