#!/usr/bin/env bash
# A plugin in Rust, outside of the tree, as sdk/ABI.md has it: built by cargo, checked, loaded.
#
#   tests/package/rust.sh BUILD_DIR
set -euo pipefail

command -v cargo >/dev/null && cargo --version >/dev/null 2>&1 || {
  echo "SKIPPED: cargo is not installed"
  exit 77
}
build=$(cd "$1" && pwd)
source_tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SANDFORGE_STATE_DIR=$work/state SANDFORGE_RUNTIME_DIR=$work/run CARGO_NET_OFFLINE=true

fail() {
  echo "FAILED: $*"
  exit 1
}
# The block of the page in this language.
block() {
  sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" "$source_tree/sdk/ABI.md"
}

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log" || fail "cmake --install"
export DIR=$work/prefix PATH=$work/prefix/bin:$PATH

mkdir -p "$work/my-plugin/src"
cd "$work/my-plugin"
cat >Cargo.toml <<'TOML'
[package]
name = "my-plugin"
version = "0.1.0"
edition = "2021"
[lib]
crate-type = ["cdylib"]
[profile.release]
panic = "abort"
opt-level = 1
TOML
cat >manifest.json <<'JSON'
{"manifest": 1, "name": "my-plugin", "version": "0.1.0", "abi": {"major": 1, "minor": 0},
 "providers": [{"name": "my-plugin", "displayName": "Rust", "optionsSchema": {
   "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
   "additionalProperties": false, "properties": {}}}]}
JSON
cat "$source_tree/tests/abi/rehearsal/rust_plugin.rs" >src/lib.rs
block rust >>src/lib.rs
grep -q sandforge.manifest src/lib.rs || fail "sdk/ABI.md has no block in Rust"

# The suite would judge a sandbox that knows one command.
block sh | sed 's/^sandforge conformance .*/& --list >list.log/' >block.sh
[[ -s block.sh ]] || fail "sdk/ABI.md has no shell block"
bash -euxo pipefail block.sh

said=$(sandforge --plugin-path target/release/libmy_plugin.so run --provider my-plugin -- echo hello)
[[ $said == hello ]] || fail "the plugin said: $said"
