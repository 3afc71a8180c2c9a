#!/usr/bin/env bash
# A template on Debian: the provider's default image, with git from its packages, and a set-up that
# installs more. debian_test.sh SANDFORGE, with an engine of its own. Minutes long, and not part of
# the default run: Debian comes from debootstrap, or from the unpacked one in SANDFORGE_TEST_DEBIAN.
set -euo pipefail

program=${1:?}
here=$(dirname "${BASH_SOURCE[0]}")
unset DOCKER_HOST
work=$(mktemp -d)
trap '"$here/engine.sh" stop "$work/engine" || true; rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
skip() {
  echo "SKIPPED: $*"
  exit 77
}
command -v git >/dev/null || skip "there is no git"
"$here/engine.sh" start "$work/engine"
DOCKER_HOST=$(cat "$work/engine/host")
export DOCKER_HOST

debian=${SANDFORGE_TEST_DEBIAN:-}
if [[ -z $debian ]]; then
  command -v debootstrap >/dev/null || skip "there is no debootstrap, and SANDFORGE_TEST_DEBIAN is not set"
  debian=$work/debian
  debootstrap --variant=minbase bookworm "$debian" >"$work/log" 2>&1 ||
    skip "debootstrap reaches no mirror: $(tail -1 "$work/log")"
fi
tar -C "$debian" --one-file-system --exclude=./proc --exclude=./sys --exclude=./dev -c . |
  docker import - node:22-slim >/dev/null

git init -q "$work/repo"
echo hello >"$work/repo/file"
git -C "$work/repo" add file
git -C "$work/repo" -c user.name=t -c user.email=t@invalid commit -q -m first
cat >"$work/c.yaml" <<END
sandbox:
  provider: docker
  options:
    stopTimeout: 1
    pullPolicy: never
    template:
      network: host
      volumes: {$work/repo: "$work/repo:ro"}
END
sf() { "$program" --config "$work/c.yaml" --state "$work/state" "$@" </dev/null; }
setup='apt-get update -q && apt-get install -y -q --no-install-recommends tree && tree --version >version'
id=$(sf build --repo "file://$work/repo" --setup "$setup" 2>"$work/log") || fail "$(tail -40 "$work/log")"
grep -q "apt" "$work/log" || fail "nothing was installed: $(cat "$work/log")"

# A session on what was built: git, the checkout, and what the set-up did.
sed -i "s|stopTimeout: 1|&\n    image: sandforge-template:${id:0:40}|" "$work/c.yaml"
sf start --session debian >"$work/out" 2>&1 || fail "$(cat "$work/out")"
[[ $(sf exec debian --shell 'cat repo/file && git -C repo rev-parse HEAD') == \
  "hello"$'\n'"$(git -C "$work/repo" rev-parse HEAD)" ]] || fail "no checkout"
sf exec debian -- tree --version | grep -q "^tree v" || fail "no program that the set-up installed"
code=0
text=$(sf exec debian --shell 'echo "ä ö" | sed s/ö/ü/; exit 3') || code=$?
[[ "$text $code" == "ä ü 3" ]] || fail "a command on Debian: $text $code"
sf rm debian >/dev/null
echo "all of it holds"
