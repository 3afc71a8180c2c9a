#!/usr/bin/env bash
# The boundary by many toolchains; ends with the line "N passed, N failed" (", N skipped").
#
#   tests/abi/matrix/run.sh [--no-install] [PART …]
#
#   PART          hosts (or one of them: hosts:gcc, hosts:clang), short, baseline, frozen, dll; all
#                 by default
#   --no-install  leave the packages alone
#   --update      write tests/abi/baseline and tests/abi/v1_0 anew, and stop: for an addition while
#                 1.0 is a draft, after reading the difference
#
# The hosts are built in build/matrix-gcc and build/matrix-clang, as deep as the folders of other
# stages: ccache tells relative paths apart. The rest takes seconds.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(cd "$here/../../.." && pwd)
cd "$tree" || exit 1
packages=(clang-14 libc++-14-dev libc++abi-14-dev abigail-tools g++-mingw-w64-x86-64-posix)
baseline=tests/abi/baseline/abi.xml
frozen=tests/abi/v1_0/include
embed=sdk/cmake/SandforgeEmbedManifest.cmake
examples=sdk/examples
entry=sandforge_plugin_entry_v1

install=yes
update=no
parts=()
hosts=()
for word in "$@"; do
  case $word in
    --no-install) install=no ;;
    --update) update=yes ;;
    hosts:gcc | hosts:clang)
      [[ ${#hosts[@]} -gt 0 ]] || parts+=(hosts)
      hosts+=("${word#hosts:}")
      ;;
    hosts | short | baseline | frozen | dll) parts+=("$word") ;;
    *)
      sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
      exit 2
      ;;
  esac
done
[[ ${#parts[@]} -gt 0 ]] || parts=(hosts short baseline frozen dll)
if [[ $install == yes ]] && ! tests/tools/apt_install.sh "${packages[@]}"; then
  echo "0 passed, 1 failed"
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
skips=()

# check NAME COMMAND …: the command succeeds.
check() {
  local name=$1
  shift
  if "$@" >"$work/output" 2>&1; then
    echo "ok      $name"
    passed=$((passed + 1))
  else
    echo "FAILED  $name"
    sed 's/^/        /' "$work/output" | head -n 40
    failed=$((failed + 1))
    return 1
  fi
}
skip() {
  echo "skipped $1: $2"
  skips+=("$1: $2")
}
# refuses CODE COMMAND …: it ends with that code.
refuses() {
  local want=$1 code=0
  shift
  "$@" || code=$?
  echo "exit code $code, expected $want"
  [[ $code -eq $want ]]
}

# ---- Plugins ------------------------------------------------------------------------------------

shared=(-shared -fPIC -O1 -fvisibility=hidden -Wl,-z,defs -Wl,-z,nodelete
  -Wl,--version-script=sdk/cmake/sandforge_plugin.map)
support_includes=(-Isdk/support/include -Isdk/support/src)

# The bytes of an example's manifest, as an object file by the compiler.
manifest() {
  local compiler=$1 example=$2 out=$3
  cmake -D "MANIFEST=$examples/$example/manifest.json" -D "OUTPUT=$out.c" -P "$embed" &&
    "$compiler" -fPIC -c "$out.c" -o "$out"
}
inspect() {
  cmake -D "PLUGIN=$1" -P sdk/cmake/SandforgeCheckPlugin.cmake
}
# plugin_c OUT COMPILER [OPTION …]
plugin_c() {
  local out=$1 compiler=$2
  shift 2
  manifest "$compiler" minimal_c "$out.o" &&
    "$compiler" -std=c11 "${shared[@]}" "$@" $examples/minimal_c/minimal.c "$out.o" -o "$out" &&
    inspect "$out"
}
# plugin_cpp OUT C-COMPILER C++-COMPILER [OPTION …]
plugin_cpp() {
  local out=$1 c=$2 cpp=$3
  shift 3
  manifest "$c" minimal_cpp "$out.o" &&
    "$cpp" -std=c++17 "${shared[@]}" -fvisibility-inlines-hidden -Isdk/include \
      "${support_includes[@]}" "$@" $examples/minimal_cpp/minimal.cpp sdk/support/src/*.cpp \
      "$out.o" -o "$out" &&
    inspect "$out"
}
plugin_rust() {
  local out=$1
  manifest gcc minimal_c "$out.o" &&
    rustc --edition 2021 --crate-type cdylib -C panic=abort -C opt-level=1 \
      -C link-arg="$out.o" -C link-arg=-Wl,-z,nodelete tests/abi/rehearsal/rust_plugin.rs \
      -o "$out" && inspect "$out"
}

# ---- Parts --------------------------------------------------------------------------------------

# build_host NAME C-COMPILER C++-COMPILER [OPTION …]
build_host() {
  local name=$1 c=$2 cpp=$3
  cmake --preset dev -B "build/matrix-$name" -D CMAKE_C_COMPILER="$c" \
    -D CMAKE_CXX_COMPILER="$cpp" "${@:4}" &&
    cmake --build "build/matrix-$name" --target abi_matrix_host sandforge-guest
}

# Another name for the same program, where it is that.
also() {
  if command -v "$2" >/dev/null &&
    [[ $(realpath "$(command -v "$2")") == "$(realpath "$(command -v "$1")")" ]]; then
    echo "$2"
  else
    echo "$1"
  fi
}

part_hosts() {
  local plugins=$work/plugins made=() name c cpp options
  mkdir -p "$plugins"
  make() { check "build the plugin $1" "${@:2}" && made+=("$1"); }
  make c-gcc plugin_c "$plugins/c-gcc" gcc -Isdk/include
  make c-clang plugin_c "$plugins/c-clang" clang-14 -Isdk/include
  make c-frozen-header plugin_c "$plugins/c-frozen-header" gcc -I$frozen
  make gcc plugin_cpp "$plugins/gcc" gcc g++
  make clang plugin_cpp "$plugins/clang" clang-14 clang++-14
  make libcxx plugin_cpp "$plugins/libcxx" clang-14 clang++-14 -stdlib=libc++
  make static-runtime plugin_cpp "$plugins/static-runtime" gcc g++ -static-libstdc++ -static-libgcc
  make old-strings plugin_cpp "$plugins/old-strings" gcc g++ -D_GLIBCXX_USE_CXX11_ABI=0
  if command -v cargo >/dev/null && command -v rustc >/dev/null; then
    make rust plugin_rust "$plugins/rust"
  else
    skip "a plugin in Rust" "cargo is not installed"
  fi

  [[ ${#hosts[@]} -gt 0 ]] || hosts=(gcc clang)
  for name in "${hosts[@]}"; do
    c=clang-14 cpp=clang++-14 options=()
    # By the names and options of the other stages, so that ccache has most of it.
    [[ $name == clang ]] || c=$(also gcc cc) cpp=$(also g++ c++) options=(-D SANDFORGE_WERROR=ON)
    check "build the host by $name" build_host "$name" "$c" "$cpp" "${options[@]}" || continue
    local bin=build/matrix-$name
    local program guest
    program=$(find "$bin" -name abi_matrix_host -type f)
    guest=$(find "$bin" -name sandforge-guest -type f)
    for plugin in "${made[@]}"; do
      mkdir -p "$work/root"
      case $plugin in
        c-* | rust) set -- minimal-c "$guest" ;;
        *) set -- minimal-cpp "$guest" "$work/root" ;;
      esac
      cp "$plugins/$plugin" "$work/$plugin.so"
      chmod 644 "$work/$plugin.so"
      check "host by $name, plugin $plugin" "$program" "$work/$plugin.so" "$@"
    done
  done
}

part_short() {
  local host=$work/short_host later=$work/later
  mkdir -p "$later"
  check "build a host of 1.0" gcc -std=gnu11 -Wall -Wextra -Werror -O1 -I$frozen \
    tests/abi/matrix/short_host.c -o "$host" -ldl || return
  check "headers of a later version" tests/abi/matrix/headers.py later "$later" || return
  local build=(gcc -std=c11 -O1 -shared -fPIC)
  check "build today's plugin" "${build[@]}" -Isdk/include $examples/minimal_c/minimal.c \
    -o "$work/today.so"
  check "build a later plugin" "${build[@]}" -I"$later" $examples/minimal_c/minimal.c \
    -o "$work/later.so"
  check "build a plugin that asks" "${build[@]}" -DASKS -Isdk/include tests/abi/matrix/greedy.c \
    -o "$work/asks.so"
  check "build a plugin that does not ask" "${build[@]}" -Isdk/include \
    tests/abi/matrix/greedy.c -o "$work/greedy.so"
  check "a host of 1.0 runs today's plugin" "$host" "$work/today.so"
  check "a host of 1.0 runs a later plugin" "$host" "$work/later.so"
  check "a plugin that asks for a later member is refused nothing else" \
    refuses 3 "$host" "$work/asks.so"
  check "a plugin that does not ask dies: the guard works" refuses 139 "$host" "$work/greedy.so"
}

# A library whose only content are the types of the headers in a folder.
types_of() {
  tests/abi/matrix/headers.py types "$work/types.c" &&
    (cd "$work" && gcc -std=c11 -g -shared -fPIC -I"$1" types.c -o "$2")
}
same_types() {
  abidiff --no-show-locs "$baseline" "$1"
}
part_baseline() {
  mkdir -p "$work/moved"
  check "today's types" types_of "$tree/sdk/include" "$work/today-types.so" || return
  check "abidiff against the baseline" same_types "$work/today-types.so"
  check "headers with a member that moved" tests/abi/matrix/headers.py moved "$work/moved"
  check "their types" types_of "$work/moved" "$work/moved-types.so"
  notices() { ! same_types "$1"; }
  check "abidiff notices a member that moved" notices "$work/moved-types.so"
}

part_frozen() {
  check "v1_0 holds today's headers while 1.0 is a draft" \
    diff -r --exclude=plugin --exclude=testing --exclude=.clang-format sdk/include/sandforge \
    $frozen/sandforge
}

# The names that a DLL exports, one a line.
exports_of() {
  x86_64-w64-mingw32-objdump -p "$1" |
    awk '/\[Ordinal\/Name Pointer\] Table/ { on = 1; next } on && !NF { exit } on { print $NF }'
}
one_export() {
  exports_of "$1" | tee "$work/exports"
  [[ $(cat "$work/exports") == "$entry" ]]
}
part_dll() {
  local options=(-shared -O1 -static -Isdk/include) rapid=$work/cross
  # Its headers are those of this machine, and nothing else of /usr/include may be seen.
  mkdir -p "$rapid"
  ln -sfn /usr/include/rapidjson "$rapid/rapidjson"
  check "a plugin in C for Windows" x86_64-w64-mingw32-gcc-posix -std=c11 "${options[@]}" \
    $examples/minimal_c/minimal.c -o "$work/minimal_c.dll" &&
    check "its DLL exports the entry alone" one_export "$work/minimal_c.dll"
  check "a plugin in C++ with sdk/support for Windows" x86_64-w64-mingw32-g++-posix -std=c++17 \
    "${options[@]}" "${support_includes[@]}" -I"$rapid" $examples/minimal_cpp/minimal.cpp \
    sdk/support/src/*.cpp -o "$work/minimal_cpp.dll" &&
    check "its DLL exports the entry alone, too" one_export "$work/minimal_cpp.dll"
  notices() { ! one_export "$1"; }
  printf '#include <sandforge/abi.h>\nSF_EXPORT int more(void);\nint more(void) { return 0; }\n' \
    >"$work/more.c"
  check "a plugin with one more export" x86_64-w64-mingw32-gcc-posix "${options[@]}" "$work/more.c" \
    $examples/minimal_c/minimal.c -o "$work/more.dll" &&
    check "which is noticed" notices "$work/more.dll"
}

if [[ $update == yes ]]; then
  mkdir -p "$(dirname "$baseline")" "$frozen/sandforge/ext"
  cp sdk/include/sandforge/abi.h "$frozen/sandforge/"
  cp sdk/include/sandforge/ext/*.h "$frozen/sandforge/ext/"
  types_of "$tree/sdk/include" "$work/types.so" &&
    abidw --no-show-locs --no-corpus-path --no-comp-dir-path --out-file "$baseline" "$work/types.so"
  exit
fi
for part in "${parts[@]}"; do
  "part_$part"
done
if [[ ${#skips[@]} -gt 0 ]]; then
  printf '\nSkipped:\n'
  printf '  %s\n' "${skips[@]}"
  echo
fi
echo "$passed passed, $failed failed, ${#skips[@]} skipped"
[[ $failed -eq 0 && $passed -gt 0 ]]
