#!/usr/bin/env bash
# The guest in a container, on the engine of DOCKER_HOST: guest_test.sh SANDFORGE GUEST, the program
# and the guest that lies beside the plugins.
set -euo pipefail

program=${1:?} guest=${2:?}
work=$(mktemp -d)
label=sandforge-test=$$
trap 'docker ps -aq --filter "label=$label" | xargs -r docker rm -f >/dev/null; rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# The configuration $1, with more options.
configure() {
  cat >"$work/$1.yaml" <<END_CONFIG
sandbox:
  provider: docker
  options:
    image: sandforge-test-busybox
    networkIsolation: NONE
    labels: {sandforge-test: "$$"}
$2
END_CONFIG
}
sf() {
  local config=$1
  shift
  "$program" --config "$work/$config.yaml" --state "$work/state" "$@" </dev/null
}
container() { docker ps -aq --no-trunc --filter "label=mastra.sandbox.id=$1"; }
first_process() { docker inspect -f '{{.Path}}' "$1"; }

configure auto ""
configure exec "    commandPath: engine-exec"
configure privileged "    privileged: true"
session=guest-$$

# The container's first process, from a volume of its hash that holds it whole.
sf auto start --session "$session" --env SECRET=canary-$$ >/dev/null
id=$(container "$session")
[[ $(first_process "$id") == /.sandforge/bin/sandforge-guest ]] || fail "no guest: $(first_process "$id")"
hash=$(sha256sum "$guest" | cut -d' ' -f1)
volume=sandforge-guest-$hash
docker volume inspect "$volume" >/dev/null || fail "the volume has another name"
[[ $(docker exec "$id" sha256sum /.sandforge/bin/sandforge-guest | cut -d' ' -f1) == "$hash" ]] ||
  fail "the program is another one"
! docker exec "$id" touch /.sandforge/bin/x 2>/dev/null || fail "the volume can be written to"
[[ -z $(docker ps -aq --filter label=sandforge.guest.fills) ]] || fail "its helper is left"
[[ $(stat -c %s "$guest") -lt 2097152 ]] || fail "the guest is too large for every engine"

# It is filled once: the next container finds it, and one whose volume is not whole completes it.
made() {
  docker events --since "$1" --until "$(date +%s.%N)" --filter event=create --filter type=container \
    --format '{{index .Actor.Attributes "sandforge.guest.fills"}}' | grep -c . || true
}
before=$(date +%s.%N)
sf auto start --session "$session-2" >/dev/null
[[ $(made "$before") == 0 ]] || fail "the volume was filled again"
sf auto rm "$session-2" >/dev/null
docker run --rm --network none -v "$volume:/v" sandforge-test-busybox rm /v/whole /v/sandforge-guest
before=$(date +%s.%N)
sf auto start --session "$session-2" >/dev/null
[[ $(made "$before") == 1 ]] || fail "the volume was not filled"
[[ $(sf auto exec "$session-2" -- echo there) == there ]] || fail "no command after it was filled"
sf auto rm "$session-2" >/dev/null

# The environment is the container's; nobody but the user sees the socket's folder.
[[ $(sf auto exec "$session" --shell 'echo "$SECRET $PWD"') == "canary-$$ /workspace" ]] ||
  fail "environment or working directory"
[[ $(docker exec "$id" stat -c %a /.sandforge/run/guest) == 700 ]] || fail "the socket is open to all"

# Files over the same connection.
head -c 3000000 /dev/urandom >"$work/blob"
sf auto cp "$work/blob" "$session:/workspace/blob" >/dev/null
sf auto cp "$session:/workspace/blob" "$work/back" >/dev/null
cmp "$work/blob" "$work/back" || fail "a file came back changed"

# A host that is killed: its command ends, and another host goes on with the same guest.
sf auto exec "$session" -- sh -c 'echo running; sleep 77' >"$work/out" 2>&1 &
for _ in $(seq 200); do
  ! grep -q running "$work/out" || break
  sleep 0.05
done
host=$(pgrep -f "exec $session -- sh -c echo running; sleep 77" | head -1)
kill -9 "$host"
for _ in $(seq 200); do
  docker exec "$id" sh -c 'ps | grep -q "[s]leep 77"' || break
  sleep 0.05
done
! docker exec "$id" sh -c 'ps | grep "[s]leep 77"' || fail "the command of a killed host runs on"
[[ $(sf auto exec "$session" -- cat /proc/1/cmdline | tr '\0' ' ') == */sandforge-guest* ]] ||
  fail "no command after a host was killed"
sf auto ps "$session" | grep -q 'sleep 77' || fail "the next host does not see the command"

# Stopped and started again: another guest, the same container.
sf auto stop "$session" >/dev/null
[[ $(sf auto exec "$session" -- echo again) == again ]] || fail "no command after a stop"
[[ $(container "$session") == "$id" ]] || fail "another container was made"
sf auto rm "$session" >/dev/null

# Where it is not wanted, and where a container could change it for all.
for config in exec privileged; do
  sf $config start --session "$session" >/dev/null
  id=$(container "$session")
  [[ $(first_process "$id") == sleep ]] || fail "$config: a guest: $(first_process "$id")"
  [[ $(sf $config exec "$session" -- echo up) == up ]] || fail "$config: no command"
  sf $config rm "$session" >/dev/null
done
echo "all of it holds"
