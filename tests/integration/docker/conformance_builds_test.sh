#!/usr/bin/env bash
# The suite's rows of templates and builds on the engine of DOCKER_HOST.
# conformance_builds_test.sh SANDFORGE PLUGIN OPTIONS
set -euo pipefail

program=${1:?} plugin=${2:?} options=${3:?}
work=$(mktemp -d)
server=
images() { docker images -q sandforge-template | sort -u; }
containers() { docker ps -aq --filter label=sandforge.build | sort -u; }
images_before=$(images) containers_before=$(containers)
new() { comm -13 <(echo "$2") <("$1") | grep . || true; }
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true
  new containers "$containers_before" | xargs -r docker rm -f >/dev/null
  new images "$images_before" | xargs -r docker rmi -f >/dev/null
  rm -rf "$work"' EXIT
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
command -v git >/dev/null || { echo "SKIPPED: there is no git"; exit 77; }

# What E07 clones. It looks for the token with a scanner of its own, and waits for it.
# shellcheck source=private_repository.sh
. "$(dirname "${BASH_SOURCE[0]}")/private_repository.sh"
SANDFORGE_CONFORMANCE_REPOSITORY_TOKEN=canary$$secret$RANDOM
serve_private "$work" "$SANDFORGE_CONFORMANCE_REPOSITORY_TOKEN"
SANDFORGE_CONFORMANCE_REPOSITORY=$url
export SANDFORGE_CONFORMANCE_REPOSITORY SANDFORGE_CONFORMANCE_REPOSITORY_TOKEN

# Its builders see nothing of this machine but git, and its network: the scanner would read all.
private=$(dirname "$options")/builds_private.json
"$program" conformance "$plugin" --options "$private" --include 'cases.E07*'

rows=()
for row in 04 05 06 08 09 10 11 12 13 14 15 16; do rows+=(--include "cases.E$row*"); done
"$program" conformance "$plugin" --options "$options" --jobs 3 "${rows[@]}"
