#!/usr/bin/env bash
# Faults from outside while a command or a build runs: of the container, of the engine, of the
# registry, and of the disk. faults_test.sh SANDFORGE, with engines of its own.
set -euo pipefail

program=${1:?}
here=$(dirname "${BASH_SOURCE[0]}")
unset DOCKER_HOST
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true
  for engine in "$work"/engine*; do [[ ! -d $engine ]] || "$here/engine.sh" stop "$engine" || true; done
  rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
engine=$work/engine
"$here/engine.sh" start "$engine"
DOCKER_HOST=$(cat "$engine/host")
export DOCKER_HOST

# The configuration $1, with more options.
configure() {
  cat >"$work/$1.yaml" <<END_CONFIG
sandbox:
  provider: docker
  options:
    image: sandforge-test-busybox
    networkIsolation: NONE
    stopTimeout: 1
$2
END_CONFIG
}
sf() {
  local config=$1
  shift
  timeout 60 "$program" --config "$work/$config.yaml" --state "$work/state" "$@" </dev/null
}
eventually() {
  for _ in $(seq 200); do
    ! "$@" || return 0
    sleep 0.05
  done
  return 1
}
container() { docker ps -aq --no-trunc --filter "label=mastra.sandbox.id=$1"; }
# Must fail with the reason $1, and say $2.
refused() {
  local reason=$1 words=$2 code=0
  shift 2
  "$@" >"$work/out" 2>&1 || code=$?
  [[ $code == 125 ]] || fail "$* ended with $code: $(cat "$work/out")"
  grep -q "\"reason\": \"$reason\"" "$work/out" || fail "no $reason: $(cat "$work/out")"
  grep -q "$words" "$work/out" || fail "not '$words': $(cat "$work/out")"
}
# A command that counts how often it began, and waits: its end is what it says.
begin() {
  : >"$work/said"
  sf "$1" --json exec "$session" -- sh -c 'echo x >>ran; echo running; sleep 50' >"$work/said" 2>&1 &
  waiting=$!
  eventually began || fail "the command did not begin: $(cat "$work/said")"
}
began() { [[ $(docker exec "$id" cat ran 2>/dev/null | wc -l) == "$runs" ]]; }
# Not as if it had done what it should, and with its output.
ends() {
  code=0
  wait "$waiting" || code=$?
  [[ $code != 0 ]] || fail "a command that was cut has ended well: $(cat "$work/said")"
  grep -q '"stdout": "running\\n"' "$work/said" || fail "its output was lost: $(cat "$work/said")"
}
# By the error of this code and reason.
ends_by() {
  ends
  [[ $code == 125 ]] || fail "the command ended with $code: $(cat "$work/said")"
  grep -q "\"code\": \"$1\"" "$work/said" || fail "no $1: $(cat "$work/said")"
  grep -q "\"reason\": \"$2\"" "$work/said" || fail "no $2: $(cat "$work/said")"
  grep -q '"commandMayHaveStarted": true' "$work/said" || fail "it says that nothing began"
  grep -q '"stdout": "running\\n"' "$work/said" || fail "its output was lost: $(cat "$work/said")"
}
# The session goes on in the same container, where nothing ran a second time.
goes_on() {
  [[ $(sf "$1" exec "$session" -- sh -c 'wc -l <ran') == "$runs" ]] || fail "it ran again, or not at all"
  [[ $(container "$session") == "$id" ]] || fail "another container was made"
  stopped || fail "the command runs on"
}
stopped() { ! docker exec "$id" sh -c 'ps | grep -q "[s]leep 50"'; }

configure guest ""
configure quick "    guestSilenceMs: 800"
configure exec "    commandPath: engine-exec"
for path in guest exec; do
  session=faults-$path
  sf "$path" start --session "$session" >/dev/null
  id=$(container "$session")

  # The container is killed, and with the next command started again.
  runs=1
  begin "$path"
  docker kill "$id" >/dev/null
  # Of an exec the engine tells how it ended.
  if [[ $path == guest ]]; then ends_by TRANSPORT_LOST docker.stream; else ends; fi
  goes_on "$path"

  # The engine is killed: nobody is reached, then the session goes on.
  runs=2
  begin "$path"
  "$here/engine.sh" kill "$engine"
  if [[ $path == guest ]]; then
    ends_by TRANSPORT_LOST docker.engine_lost
  else
    ends_by TRANSPORT_LOST docker.stream
  fi
  refused docker.absent "the engine does not run" sf "$path" --json exec "$session" -- true
  "$here/engine.sh" again "$engine"
  goes_on "$path"

  # The container is removed: the next command makes another one.
  runs=3
  begin "$path"
  docker rm -f "$id" >/dev/null
  if [[ $path == guest ]]; then ends_by GONE docker.gone; else ends; fi
  [[ $(sf "$path" exec "$session" -- sh -c 'test -e ran || echo fresh') == fresh ]] ||
    fail "no fresh container"
  sf "$path" rm "$session" >/dev/null
done

# An engine that says nothing: not for longer than the silence and one look at it.
session=faults-silent runs=1
sf quick start --session "$session" >/dev/null
id=$(container "$session")
begin quick
kill -STOP "$(cat "$(cat "$engine/place")/pid")"
ends_by TRANSPORT_LOST docker.engine_lost
grep -q "does not answer in time" "$work/said" || fail "it does not say why: $(cat "$work/said")"
kill -CONT "$(cat "$(cat "$engine/place")/pid")"
goes_on quick

# One that keeps its containers over its own end: what was cut off goes on, and can be seen and ended.
"$here/engine.sh" kill "$engine"
"$here/engine.sh" again "$engine" --live-restore
runs=2
begin guest
"$here/engine.sh" kill "$engine"
ends_by TRANSPORT_LOST docker.engine_lost
"$here/engine.sh" again "$engine" --live-restore
[[ $(sf guest exec "$session" -- sh -c 'wc -l <ran') == "$runs" ]] || fail "it ran again, or not at all"
[[ $(container "$session") == "$id" ]] || fail "another container was made"
sf guest ps "$session" >"$work/out"
process=$(awk '$3 == "running" { print $1 }' "$work/out")
[[ -n $process ]] || fail "the command that was cut off is not listed: $(cat "$work/out")"
sf guest kill "$session" "$process" || fail "$(cat "$work/out")"
eventually stopped || fail "it cannot be ended"
sf guest rm "$session" >/dev/null

# Images: missing where none may be pulled, and a registry that refuses or has none.
mkdir -p "$work/www/cgi-bin"
for _ in $(seq 20); do
  port=$((20000 + RANDOM % 20000))
  busybox httpd -f -p "127.0.0.1:$port" -h "$work/www" &
  server=$!
  until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || ! kill -0 "$server" 2>/dev/null; do :; done
  ! kill -0 "$server" 2>/dev/null || break
done
of_image() {
  configure image ""
  sed -i "s|image: .*|image: $1|" "$work/image.yaml"
}
of_image "127.0.0.1:$port/no/such:1"
refused docker.image_pull_failed "Failed to pull Docker image '127.0.0.1:$port/no/such:1'" \
  sf image --json start --session faults-image
kill "$server"
wait "$server" || true
echo "/:nobody:nothing" >"$work/httpd.conf"
busybox httpd -f -p "127.0.0.1:$port" -h "$work/www" -c "$work/httpd.conf" &
server=$!
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
refused docker.image_pull_failed "the option registries has the credentials" sf image --json start --session faults-image
grep -q '"code": "UNAUTHENTICATED"' "$work/out" || fail "a pull that is denied: $(cat "$work/out")"
echo "    pullPolicy: never" >>"$work/image.yaml"
refused docker.image_missing "pullPolicy is never" sf image --json start --session faults-image
[[ -z $(docker ps -aq --filter label=mastra.sandbox) ]] || fail "a container is left"

# A disk that is full in a build: the step says so, or else the engine when it keeps what a step did.
SANDFORGE_ENGINE_SIZE=48m env -u DOCKER_HOST "$here/engine.sh" start "$engine-small"
DOCKER_HOST=$(cat "$engine-small/host")
git init -q "$work/repo"
git -C "$work/repo" -c user.name=t -c user.email=t@invalid commit -q --allow-empty -m first
configure build "    template:
      volumes: {/usr: \"/usr:ro\", /usr/lib: \"/lib:ro\", /usr/lib64: \"/lib64:ro\", $work: $work}"
build() { sf build build --repo "file://$work/repo" --setup "$1" >"$work/out" 2>&1; }
free=$(df --output=avail -k "$(cat "$engine-small/place")/data" | tail -1)
! build "dd if=/dev/zero of=big bs=1M count=100" || fail "a build on a full disk"
grep -q "No space left on device" "$work/out" || fail "it does not say why: $(cat "$work/out")"
! build "head -c $((free * 700)) /dev/urandom >big" || fail "a build on a disk that is too small"
grep -q "no space left on device" "$work/out" || fail "it does not say why: $(cat "$work/out")"
grep -q "keep what a step did" "$work/out" || fail "no step was kept: nothing is tested"
[[ -z $(docker ps -aq) ]] || fail "a build container is left"
build "echo small >small" || fail "no build after one without room: $(cat "$work/out")"
echo "all of it holds"
