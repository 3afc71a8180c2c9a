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
# Until the command succeeds.
eventually() {
  for _ in $(seq 200); do
    ! "$@" || return 0
    sleep 0.05
  done
  return 1
}
container() { docker ps -aq --no-trunc --filter "label=mastra.sandbox.id=$1"; }
ended() { ! docker exec "$id" sh -c "ps | grep -q '$1'"; }
first_process() { docker inspect -f '{{.Path}}' "$1"; }

configure auto ""
configure user '    user: "1000:1000"'
configure exec "    commandPath: engine-exec"
session=guest-$$

# The container's first process, from a volume of its hash that holds it whole.
sf auto start --session "$session" --env SECRET=canary-$$ >/dev/null
id=$(container "$session")
[[ $(first_process "$id") == /.sandforge/sandforge-guest ]] || fail "no guest: $(first_process "$id")"
hash=$(sha256sum "$guest" | cut -d' ' -f1)
volume=sandforge-guest-$hash
docker volume inspect "$volume" >/dev/null || fail "the volume has another name"
[[ $(docker exec "$id" sha256sum /.sandforge/sandforge-guest | cut -d' ' -f1) == "$hash" ]] ||
  fail "the program is another one"
! docker exec "$id" touch /.sandforge/x 2>/dev/null || fail "the volume can be written to"
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
: >"$work/out"
sf auto exec "$session" -- sh -c 'echo running; sleep 77' >"$work/out" 2>&1 &
eventually grep -q running "$work/out" || fail "the command did not begin"
host=$(pgrep -f "exec $session -- sh -c echo running; sleep 77" | head -1)
kill -9 "$host"
eventually ended "[s]leep 77" || fail "the command of a killed host runs on"
[[ $(sf auto exec "$session" -- cat /proc/1/cmdline | tr '\0' ' ') == */sandforge-guest* ]] ||
  fail "no command after a host was killed"
sf auto ps "$session" | grep -q 'sleep 77' || fail "the next host does not see the command"

# A command that nobody waits for: a reader that is killed takes nothing away, a later one has all.
process=$(sf auto exec "$session" --detach --shell \
  'echo before; while [ ! -e go ]; do sleep 0.05; done; echo after; exit 3')
: >"$work/out"
sf auto logs "$session" "$process" --follow >"$work/out" &
eventually grep -q before "$work/out" || fail "the command did not begin"
reader=$(pgrep -f "logs $session $process --follow" | head -1)
kill -9 "$reader"
wait $! || true
[[ $(sf auto logs "$session" "$process") == before ]] || fail "a killed reader took the output away"
sf auto exec "$session" -- touch go
[[ $(sf auto logs "$session" "$process" --follow) == $'before\nafter' ]] || fail "not all of its output"
sf auto exec "$session" -- rm go
process=$(sf auto exec "$session" --detach --shell 'sleep 78 & sleep 79')
sf auto kill "$session" "$process"
eventually ended "[s]leep 7[89]" || fail "a process outlived kill"

# A container that is paused loses nothing; a guest that says nothing is lost.
guest_process() {
  docker exec "$id" sh -c 'ps' | awk '/sandforge-guest serve/ && !/docker-init/ { print $1 }'
}
# A command that waits for the file go, which the caller makes.
wait_for_go() {
  : >"$work/out"
  sf quick --log-level debug exec "$session" -- sh -c 'echo running; while [ ! -e go ]; do sleep 0.05; done; echo gone on' \
    >"$work/out" 2>"$work/err" &
  waiting=$!
  eventually grep -q running "$work/out" || fail "the command did not begin"
}
configure quick "    guestSilenceMs: 800"
wait_for_go
docker pause "$id" >/dev/null
eventually grep -q "container is paused" "$work/err" || fail "the silence was not noticed: $(cat "$work/err")"
docker unpause "$id" >/dev/null
docker exec "$id" touch /workspace/go
wait "$waiting" || fail "a command in a paused container: $(cat "$work/err")"
grep -q "gone on" "$work/out" || fail "output after a pause"
docker exec "$id" rm /workspace/go
wait_for_go
docker exec "$id" kill -STOP "$(guest_process)"
code=0
wait "$waiting" || code=$?
[[ $code == 125 ]] || fail "a silent guest: $code $(cat "$work/err")"
docker exec "$id" kill -CONT "$(guest_process)"

# Stopped and started again: another guest, the same container.
sf auto stop "$session" >/dev/null
[[ $(sf auto exec "$session" -- echo again) == again ]] || fail "no command after a stop"
[[ $(container "$session") == "$id" ]] || fail "another container was made"
sf auto rm "$session" >/dev/null

# Idle: without any host the guest ends the container, and not while a command runs; what the next
# host sees is a session that is stopped, and that goes on.
configure idle "    idleTimeoutMs: 1500"
idle_ended() { [[ $(docker inspect -f '{{.State.Running}}' "$id") == false ]]; }
sf idle start --session "$session" >/dev/null
id=$(container "$session")
: >"$work/out"
sf idle exec "$session" --shell 'touch kept; echo running; sleep 4; echo whole' >"$work/out" &
waiting=$!
eventually grep -q running "$work/out" || fail "the command did not begin"
wait "$waiting" || fail "the container ended while a command ran"
grep -q whole "$work/out" || fail "the command did not end by itself"
eventually idle_ended || fail "the idle container goes on"
[[ $(docker inspect -f '{{.State.ExitCode}} {{.State.OOMKilled}}' "$id") == "0 false" ]] ||
  fail "the idle container did not end in peace"
[[ $(sf idle exec "$session" --shell 'ls kept') == kept ]] || fail "an idle session does not go on"
[[ $(container "$session") == "$id" ]] || fail "another container was made for an idle session"
# A host that dies while it is connected.
: >"$work/out"
sf idle exec "$session" -- sh -c 'echo running; sleep 76' >"$work/out" 2>&1 &
eventually grep -q running "$work/out" || fail "the command did not begin"
kill -9 "$(pgrep -f "exec $session -- sh -c echo running; sleep 76" | head -1)"
wait $! 2>/dev/null || true
eventually idle_ended || fail "the container of a dead host goes on"
sf idle ps --check | grep "$session" | grep -q stopped || fail "ps does not see that it is stopped"
sf idle rm "$session" >/dev/null

# As any user, also when the container starts again.
sf user start --session "$session" >/dev/null
sf user stop "$session" >/dev/null
[[ $(sf user exec "$session" -- id -u) == 1000 ]] || fail "no command of a user after a stop"
id=$(container "$session")
[[ $(docker exec "$id" stat -c %u /.sandforge/run/guest) == 1000 ]] || fail "another user's guest"
sf user rm "$session" >/dev/null

# Where it is not wanted.
sf exec start --session "$session" >/dev/null
id=$(container "$session")
[[ $(first_process "$id") == sleep ]] || fail "a guest that is not wanted: $(first_process "$id")"
[[ $(sf exec exec "$session" -- echo up) == up ]] || fail "no command by the engine"
sf exec rm "$session" >/dev/null

# A command of the container's own stands below the guest, and the container ends as it does.
configure own "    command: [sh, -c, 'while [ ! -e end ]; do sleep 0.05; done; exit 7']"
sf own start --session "$session" >/dev/null
id=$(container "$session")
[[ $(first_process "$id") == /.sandforge/sandforge-guest ]] || fail "no guest above a command"
docker inspect -f '{{join .Config.Cmd " "}}' "$id" | grep -q -- "--grace-ms 10000 -- sh" ||
  fail "its command has not the stopTimeout to end"
sf own exec "$session" -- touch end
[[ $(timeout 60 docker wait "$id") == 7 ]] || fail "the container did not end as its command did"
sf own rm "$session" >/dev/null
echo "all of it holds"
