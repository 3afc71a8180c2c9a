#!/usr/bin/env bash
# The suite's rows of templates and builds on the engine of DOCKER_HOST.
# conformance_builds_test.sh SANDFORGE PLUGIN OPTIONS
set -euo pipefail

program=${1:?} plugin=${2:?} options=${3:?}
images() { docker images -q sandforge-template | sort -u; }
containers() { docker ps -aq --filter label=sandforge.build | sort -u; }
images_before=$(images) containers_before=$(containers)
new() { comm -13 <(echo "$2") <("$1") | grep . || true; }
trap 'new containers "$containers_before" | xargs -r docker rm -f >/dev/null
  new images "$images_before" | xargs -r docker rmi -f >/dev/null' EXIT

# E07 wants an image of a repository that is nowhere: builds_test.sh has one. No setting is a size,
# which E12 needs.
rows=()
for row in E04 E05 E06 E08 E09 E10 E11 E13 E14 E15 E16; do rows+=(--include "cases.$row*"); done
"$program" conformance "$plugin" --options "$options" --jobs 2 "${rows[@]}"
