#!/usr/bin/env bash
# Installs a build into a fresh prefix and builds, installs and runs a project against it.
#
#   tests/package/run.sh BUILD_DIR
set -euo pipefail

build=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

step() { printf '==> %s\n' "$*"; }
fail() {
  echo "FAILED: $*"
  exit 1
}

step "install"
cmake --install "$build" --prefix "$prefix" >"$work/install.log" || {
  tail -n 20 "$work/install.log"
  fail "cmake --install"
}
# The source and build trees must not be named by what was installed, nor be needed by it.
source_tree=$(cd "$here/../.." && pwd)
if grep -rlF -e "$source_tree/" -e "$build/" "$prefix"/lib*/cmake; then
  fail "installed CMake files name the source tree"
fi

step "a project of C++"
cp -r "$here/project" "$work/project"
cmake -S "$work/project" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_BUILD_TYPE=Debug
cmake --build "$work/build"
ctest --test-dir "$work/build" --output-on-failure --no-tests=error
cmake --install "$work/build" --prefix "$work/elsewhere" >/dev/null
[[ -f $work/elsewhere/lib/sandforge/plugins/outside.so ]] || fail "the plugin was not installed"

# The first block of a language in a file of the source tree.
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" "$source_tree/$2"; }
build_project() {
  cmake -S "$1" -B "$1/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Debug
  cmake --build "$1/build"
}

step "the host that the README shows"
mkdir "$work/host"
cp "$source_tree/hosts/example/main.cpp" "$work/host"
block cmake README.md >"$work/host/CMakeLists.txt"
build_project "$work/host"
said=$("$work/host/build/first" "$prefix/lib/sandforge/plugins" "$work/host/root")
[[ $said == "hello from"$'\n'"$work/host/root/first" ]] || fail "the host said: $said"

step "a test runner of one's own, over the conformance suite"
cp -r "$here/runner" "$work/runner"
build_project "$work/runner"
said=$("$work/runner/build/runner" "$prefix/lib/sandforge/plugins/local.so" no.such.case 2>&1) && fail "a glob that fits nothing was taken"
[[ $said == *"fits no case"* ]] || fail "the runner said: $said"
said=$("$work/runner/build/runner" "$prefix/lib/sandforge/plugins/local.so" contract.A1 cases.E05)
[[ $said == *"local: 2 cases: 1 pass, 0 fail, 1 not applicable, 0 unverified"* ]] ||
  fail "the runner said: $said"
[[ -f $prefix/share/sandforge/conformance/commands.json ]] || fail "no cases were installed"

step "the plugins that the README of the sdk shows, in both styles"
export SANDFORGE_STATE_DIR=$work/state
for style in minimal coroutine; do
  cp -r "$source_tree/sdk/examples/${style}_cpp" "$work/$style"
  block cmake sdk/README.md >"$work/$style/CMakeLists.txt"
done
# With the C++ runtime in it: the check after the link refuses it when it still needs one.
sed -i -e s/minimal.cpp/clockwork.cpp/ -e s/cxx_std_17/cxx_std_20/ \
  -e 's/ INSTALL)/ INSTALL STATIC_RUNTIME)/' "$work/coroutine/CMakeLists.txt"
grep -q STATIC_RUNTIME "$work/coroutine/CMakeLists.txt" || fail "the README has no INSTALL"
for style in minimal coroutine; do
  build_project "$work/$style"
done
cat >"$work/minimal/my.yaml" <<END
plugins:
  paths: [build/my_provider.so]
  policies: {example-minimal-cpp: {allow: {process: true}}}
sandbox: {provider: minimal-cpp, options: {root: $work/root}}
END
said=$("$prefix/bin/sandforge" --config "$work/minimal/my.yaml" run -- echo "from outside")
[[ $said == "from outside" ]] || fail "the plugin of the README said: $said"
said=$("$prefix/bin/sandforge" --plugin-path "$work/coroutine/build/my_provider.so" \
  run --provider coroutine-cpp -- tick 2 1)
[[ $said == "tick"$'\n'"tick" ]] || fail "the coroutines of the README said: $said"

step "a plugin of C, in a project that has no C++"
cmake -S "$work/project" -B "$work/build-c" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DONLY_C=ON
cmake --build "$work/build-c"

step "a plugin that exports too much is refused"
if cmake --build "$work/build-c" --target leaky >"$work/leaky.log" 2>&1; then
  fail "a plugin with two exports was built"
fi
grep -q 'must export sandforge_plugin_entry_v1 and nothing else' "$work/leaky.log" ||
  { cat "$work/leaky.log"; fail "another reason than the exports"; }
[[ ! -e $work/build-c/leaky.so ]] || fail "the refused plugin was left behind"

step "a plugin with an undefined symbol is refused"
if cmake --build "$work/build-c" --target unresolved >"$work/unresolved.log" 2>&1; then
  fail "a plugin with an undefined symbol was built"
fi
grep -q 'undefined reference to .nobody_has_this' "$work/unresolved.log" ||
  { cat "$work/unresolved.log"; fail "another reason than the symbol"; }

step "a manifest that is no JSON is refused"
if cmake --build "$work/build-c" --target garbled >"$work/garbled.log" 2>&1; then
  fail "a plugin with a broken manifest was built"
fi
grep -q 'garbled.json: not a JSON object' "$work/garbled.log" ||
  { cat "$work/garbled.log"; fail "another reason than the manifest"; }
step "done"
