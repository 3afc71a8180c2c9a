#!/usr/bin/env bash
# What happens to containers behind the program's back, and what it leaves: outside_test.sh SANDFORGE
# on the engine of DOCKER_HOST.
set -euo pipefail

program=${1:?}
work=$(mktemp -d)
label=sandforge-test=$$
trap 'docker ps -aq --filter "label=$label" | xargs -r docker rm -f >/dev/null; rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
cat >"$work/c.yaml" <<END
sandbox:
  provider: docker
  options:
    image: sandforge-test-busybox
    networkIsolation: NONE
    stopTimeout: 1
    labels: {sandforge-test: "$$"}
END
sf() { "$program" --config "$work/c.yaml" --state "$work/state" "$@" </dev/null; }
container() { docker ps -aq --no-trunc --filter "label=mastra.sandbox.id=$1"; }
# Of a command that must fail: its code, and its words.
refused() {
  local want=$1 code=0
  shift
  "$@" >"$work/out" 2>"$work/err" || code=$?
  [[ $code -eq $want ]] || fail "$* ended with $code: $(cat "$work/err")"
}

session=outside-$$
sf start --session "$session" --env SECRET=canary-$$ >/dev/null
id=$(container "$session")
[[ $(wc -l <<<"$id") -eq 1 && -n $id ]] || fail "there is not one container: $id"
[[ $(docker inspect -f '{{.HostConfig.NetworkMode}} {{.HostConfig.Init}}' "$id") == "none true" ]] ||
  fail "the options did not reach the engine"
[[ $(sf exec "$session" --shell 'echo "$SECRET $PWD"') == "canary-$$ /workspace" ]] ||
  fail "environment or working directory"

# A session that another process of the program goes on with.
sf exec "$session" -- sh -c 'echo kept > file'
sf stop "$session"
[[ $(docker inspect -f '{{.State.Running}}' "$id") == false ]] || fail "stop stopped nothing"
[[ $(sf exec "$session" -- cat file) == kept ]] || fail "the file was lost"
[[ $(container "$session") == "$id" ]] || fail "another container was made"

# Paused, and killed, from outside: the next command goes on with the same container.
docker pause "$id" >/dev/null
[[ $(sf exec "$session" -- echo up) == up ]] || fail "a paused container is not gone on with"
docker kill "$id" >/dev/null
[[ $(sf exec "$session" -- echo up) == up ]] || fail "a killed container is not started again"
[[ $(container "$session") == "$id" ]] || fail "another container was made"

# In the middle of a command: killed, then removed. Never an exit of 0.
sf exec "$session" -- sh -c 'echo running; sleep 60' >"$work/out" 2>"$work/err" &
running=$!
for _ in $(seq 200); do
  ! grep -q running "$work/out" || break
  sleep 0.05
done
docker rm -f "$id" >/dev/null
code=0
wait "$running" || code=$?
[[ $code -ne 0 ]] || fail "a command whose container was removed succeeded"
# A later call finds none, and makes one anew.
[[ $(sf exec "$session" -- sh -c 'test -e file || echo fresh') == fresh ]] || fail "no fresh container"
[[ $(container "$session") != "$id" ]] || fail "the container is not gone"

# A stranger that has the name.
sf rm "$session" >/dev/null
sf start --session "$session" >/dev/null
name=$(docker inspect -f '{{slice .Name 1}}' "$(container "$session")")
sf rm "$session" >/dev/null
[[ -z $(container "$session") ]] || fail "rm left the container"
docker create --name "$name" --label "$label" sandforge-test-busybox true >/dev/null
refused 125 sf start --session "$session"
grep -q "another container has the name $name" "$work/err" || fail "$(cat "$work/err")"
docker rm "$name" >/dev/null

# A command that never ends leaves nothing when its time is over.
sf start --session "$session" >/dev/null
refused 124 sf exec "$session" --timeout 1s -- sh -c 'sleep 99 & setsid sleep 99 & sleep 99'
left=$(docker exec "$(container "$session")" sh -c 'ps | grep -c "[s]leep 99"' || true)
[[ $left == 0 ]] || fail "$left processes of a command are left"
sf rm "$session" >/dev/null
echo "all of it holds"
