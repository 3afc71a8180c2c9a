#!/usr/bin/env bash
# The path of somebody who has never seen this tree: an installation, a project of their own by
# `sandforge new`, its build, its tests, the conformance suite, and a command in a sandbox of it.
#
#   tests/package/stranger.sh BUILD_DIR LANGUAGE
set -euo pipefail

build=$(cd "$1" && pwd)
language=$2
source_tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
export HOME=$work/home SANDFORGE_STATE_DIR=$work/state SANDFORGE_RUNTIME_DIR=$work/run
mkdir "$HOME"

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
began=$SECONDS
cd "$work"

# Runs the shell block of a page of the sdk, as it stands there, after a change by sed.
export DIR=$prefix PATH=$prefix/bin:$PATH CMAKE_GENERATOR=Ninja CMAKE_BUILD_TYPE=Debug
export CFLAGS='-Wall -Wextra -Werror' CXXFLAGS='-Wall -Wextra -Werror'
run_block() {
  local block
  block=$(sed -n '/^```sh$/,/^```$/{/^```/d;p}' "$source_tree/$1" | sed "$2")
  [[ -n $block ]] || fail "$1 has no shell block"
  bash -euxo pipefail -c "$block"
}

step "the first provider, as sdk/README.md has it, in $language"
run_block sdk/README.md "s/new my-cloud/& --lang $language/" | tee "$work/first.log"
[[ $(tail -n 1 "$work/first.log") == hello ]] || fail "the command did not say hello"
cd my-cloud
if grep -rnE '@[A-Z]+@' --exclude-dir=build .; then fail "a mark was not filled in"; fi
if grep -rnF "$source_tree" --exclude-dir=build .; then fail "the project names the source tree"; fi
echo "from new to green: $((SECONDS - began)) s"

step "doctor"
sandforge --config sandforge.yaml plugins doctor
sandforge config check sandforge.yaml

step "checked by hand and pinned, as sdk/docs/distribution.md has it"
run_block sdk/docs/distribution.md ""
sum=$(sha256sum build/my-cloud.so)
sed "s/SHA256/${sum%% *}/" "$source_tree/tests/package/pinned.yaml" >pinned.yaml
said=$(sandforge --config pinned.yaml run -- echo "pinned")
[[ $said == "pinned" ]] || fail "the pinned plugin said: $said"
sed "s/SHA256/$(printf '0%.0s' {1..64})/" "$source_tree/tests/package/pinned.yaml" >wrong.yaml
if sandforge --config wrong.yaml plugins doctor >wrong.log; then fail "a wrong pin was taken"; fi
grep -q "its bytes are not the ones that it is pinned to" wrong.log || {
  cat wrong.log
  fail "another reason than the pin"
}

step "a command in a sandbox of it"
said=$(sandforge --config sandforge.yaml run -- echo "from a stranger")
[[ $said == "from a stranger" ]] || fail "the command said: $said"

step "install it"
cmake --install build --prefix "$prefix"
# That it lies there is no grant.
sandforge --json plugins doctor >installed.json
grep -q '"isolation": *"process"' installed.json || fail "it runs inside the program"
if sandforge run --provider my-cloud -- true 2>refused.log; then fail "it needs no grant"; fi
# The message ends with the line that grants it.
grep -oE 'plugins: \{policies: \{my-cloud: .*\}$' refused.log >grants.yaml || {
  cat refused.log
  fail "another reason than the missing grant"
}
[[ $(sandforge ps --json) == "[]" ]] || fail "a session is left"
said=$(sandforge --config grants.yaml run --provider my-cloud -- echo "beside the others")
[[ $said == "beside the others" ]] || fail "the installed plugin said: $said"
step "done, $((SECONDS - began)) s from new on"
