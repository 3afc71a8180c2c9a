#!/usr/bin/env bash
# Compiles every public header alone, with each compiler and standard it is promised for, and ends
# with the line "N passed, N failed" (", N skipped", with the reason, where a compiler is missing).
#
#   tests/abi/headers/run.sh [TREE]     TREE is the source tree to look at, this one by default
#
#   sdk/include: sandforge/abi.h, sandforge/ext/   C11, C17, C++11, C++14, C++17, C++20
#   sdk/include: everything else                   C++17 (g++), C++20 (clang++)
#   sdk/support/include                            C++17 (g++), C++20 (clang++)
#   core/include                                   C++20
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(cd "${1:-$here/../../..}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

families=("gcc g++" "clang-14 clang++-14")

# The headers below a folder, by the name that an #include gives them. What lies in impl/ is the
# second half of a header and is included by it alone.
headers_of() {
  [[ ! -d $tree/$1 ]] || (cd "$tree/$1" && find . -name '*.h' -o -name '*.hpp') |
    sed 's|^\./||' | grep -v '/impl/' | sort
}

# One line per compilation: compiler, language, standard, header.
plan() {
  local header=$1 family standard
  shift
  for family in "${families[@]}"; do
    for standard in "$@"; do
      case $standard in
        c++*) echo "${family#* } c++ $standard $header" ;;
        *) echo "${family% *} c $standard $header" ;;
      esac
    done
  done
}

# Our own builds compile these as C++20 with g++ as well.
plan_cpp() {
  plan "$1" c++17 c++20 | grep -vE '^(g\+\+.* c\+\+20|clang.* c\+\+17) '
}

for header in $(headers_of sdk/include); do
  case $header in
    sandforge/abi.h | sandforge/ext/*.h) plan "$header" c11 c17 c++11 c++14 c++17 c++20 ;;
    # Coroutines are the one part of the layer for authors that needs C++20.
    *) if grep -q '<coroutine>' "$tree/sdk/include/$header"; then plan "$header" c++20
       else plan_cpp "$header"; fi ;;
  esac
done >>"$work/plan"
for header in $(headers_of sdk/support/include); do plan_cpp "$header"; done >>"$work/plan"
for header in $(headers_of core/include); do plan "$header" c++20; done >>"$work/plan"

# What a missing compiler would have had to do is counted as skipped.
skips=()
skipped=0
for compiler in ${families[*]}; do
  if command -v "$compiler" >/dev/null; then continue; fi
  count=$(grep -c "^$compiler " "$work/plan" || :)
  skips+=("$compiler is not installed: $count compilations")
  skipped=$((skipped + count))
  sed -i "/^$compiler /d" "$work/plan"
done

compile() {
  local compiler=$1 language=$2 standard=$3 header=$4 name
  name=$(mktemp "$work/result.XXXXXX")
  if ! printf '#include <%s>\n' "$header" |
    "$compiler" -x "$language" "-std=$standard" -fsyntax-only -Wall -Wextra -Wpedantic -Werror \
      -I"$tree/sdk/include" -I"$tree/sdk/support/include" -I"$tree/core/include" - >"$name" 2>&1; then
    mv "$name" "$name.failed"
    sed -i "1i FAILED: $header with $compiler -std=$standard" "$name.failed"
  fi
}
export -f compile
export tree work
xargs -r -P "$(nproc)" -L 1 bash -c 'compile "$@"' compile <"$work/plan"

total=$(wc -l <"$work/plan")
failed=$(find "$work" -name 'result.*.failed' | wc -l)
[[ $failed -eq 0 ]] || head -n 20 "$work"/result.*.failed
if [[ $skipped -gt 0 ]]; then
  printf '\nSkipped:\n'
  printf '  %s\n' "${skips[@]}"
  echo
fi
echo "$((total - failed)) passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 && $total -gt 0 ]]
