#!/usr/bin/env bash
# The suite's row of a private network on the engine of DOCKER_HOST.
# private_network_test.sh SANDFORGE PLUGIN
set -euo pipefail

program=${1:?} plugin=${2:?}
work=$(mktemp -d)
network=sandforge-test-$$
trap 'docker ps -aq --filter "network=$network" | xargs -r docker rm -f >/dev/null
  docker network rm "$network" >/dev/null 2>&1 || true
  rm -rf "$work"' EXIT
skip() {
  echo "SKIPPED: $*"
  exit 77
}
docker network create --internal "$network" >"$work/out" 2>&1 ||
  skip "the engine makes no network: $(cat "$work/out")"

# Where the rules of this machine close every bridge, there is nothing to show.
docker run -d --name "$network" --network "$network" sandforge-test-busybox sleep 60 >/dev/null
address=$(docker inspect -f "{{(index .NetworkSettings.Networks \"$network\").IPAddress}}" "$network")
docker run --rm --network "$network" sandforge-test-busybox ping -c 1 -W 3 "$address" >/dev/null ||
  skip "two containers of one network do not reach each other on this machine"
docker rm -f "$network" >/dev/null

cat >"$work/options.json" <<END
{"image": "sandforge-test-busybox", "networkIsolation": "PRIVATE", "networkName": "$network", "stopTimeout": 1}
END
"$program" conformance "$plugin" --options "$work/options.json" --include 'cases.G_network_private'
