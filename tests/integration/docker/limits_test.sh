#!/usr/bin/env bash
# Every limit and right of the options reaches the container, as an engine tells it that looks at it:
# limits_test.sh SANDFORGE, on the engine of DOCKER_HOST.
set -euo pipefail

program=${1:?}
work=$(mktemp -d)
label=sandforge-test=$$
trap 'docker ps -aq --filter "label=$label" | xargs -r docker rm -f >/dev/null; rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
sf() {
  "$program" --config "$work/$1.yaml" --state "$work/state" "${@:2}" </dev/null
}
# The configuration $1, with more options.
configure() {
  cat >"$work/$1.yaml" <<END_CONFIG
sandbox:
  provider: docker
  options:
    image: sandforge-test-busybox
    networkIsolation: NONE
    labels: {sandforge-test: "$$", purpose: limits}
$2
END_CONFIG
}
# What the container $id has at $1 is $2.
has() {
  local found
  found=$(docker inspect -f "{{json $1}}" "$id")
  [[ $found == "$2" ]] || fail "$1 is $found, and not $2"
}
start() {
  sf "$1" start --session "limits-$1-$$" 2>"$work/$1.err" >/dev/null || fail "$(cat "$work/$1.err")"
  id=$(docker ps -aq --no-trunc --filter "label=mastra.sandbox.id=limits-$1-$$")
}

configure all '    memory: 134217728
    memorySwap: 134217728
    cpus: 0.5
    cpuShares: 512
    pidsLimit: 64
    ulimits: [{name: nofile, soft: 200, hard: 300}]
    tmpfs: {/scratch: "size=1m"}
    readonlyRootfs: true
    capDrop: [ALL]
    capAdd: [CHOWN]
    securityOpt: [no-new-privileges]
    user: "1000:1000"
    init: true'
start all
has .HostConfig.Memory 134217728
has .HostConfig.MemorySwap 134217728
has .HostConfig.NanoCpus 500000000
has .HostConfig.CpuShares 512
has .HostConfig.PidsLimit 64
has '(index .HostConfig.Ulimits 0).Name' '"nofile"'
has '(index .HostConfig.Ulimits 0).Soft' 200
has '(index .HostConfig.Ulimits 0).Hard' 300
has .HostConfig.Tmpfs '{"/scratch":"size=1m"}'
has .HostConfig.ReadonlyRootfs true
has .HostConfig.CapDrop '["ALL"]'
[[ $(docker inspect -f '{{json .HostConfig.CapAdd}}' "$id") == *CHOWN* ]] || fail "no capability is added"
has .HostConfig.SecurityOpt '["no-new-privileges"]'
has .Config.User '"1000:1000"'
has .HostConfig.Init true
has '(index .Config.Labels "purpose")' '"limits"'
# And counts inside.
said=$(sf all exec "limits-all-$$" --shell 'id -u; ulimit -n; touch /x 2>/dev/null || echo closed; touch /scratch/x && echo open')
[[ $said == $'1000\n200\nclosed\nopen' ]] || fail "inside: $said"

configure quota '    cpuQuota: 50000
    cpuPeriod: 100000
    init: false'
start quota
has .HostConfig.CpuQuota 50000
has .HostConfig.CpuPeriod 100000
has .HostConfig.Init false
for kind in all quota; do sf "$kind" rm "limits-$kind-$$" >/dev/null; done
echo "all of it holds"
