#!/usr/bin/env bash
# `sandforge gc`: machines without a session, of this host and of others, and what docker is left
# with. gc_test.sh SANDFORGE on the engine of DOCKER_HOST.
set -euo pipefail

program=${1:?}
work=$(mktemp -d)
label=sandforge-test=$$
image=sandforge-test-busybox
trap 'docker ps -aq --filter "label=$label" | xargs -r docker rm -f >/dev/null; rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
cat >"$work/c.yaml" <<END
sandbox:
  provider: docker
  options:
    image: $image
    networkIsolation: NONE
    stopTimeout: 1
    labels: {sandforge-test: "$$"}
END
# The state folder is the host.
sf() {
  local host=$1
  shift
  "$program" --config "$work/c.yaml" --state "$work/$host" "$@" </dev/null
}
container() { docker ps -aq --no-trunc --filter "label=mastra.sandbox.id=$1"; }
# What others have at this engine is left out by all looks: only what carries this test's names.
ours() { grep -o "gc-$$-[a-z]*" | sort -u | tr '\n' ' '; }

for name in known lost stopped; do sf mine start --session "gc-$$-$name" >/dev/null; done
sf theirs start --session "gc-$$-foreign" >/dev/null
lost=$(container "gc-$$-lost") stopped=$(container "gc-$$-stopped")
foreign=$(container "gc-$$-foreign") known=$(container "gc-$$-known")
docker stop -t 0 "$stopped" >/dev/null
# Their sessions are forgotten, and the machines stay.
forget() { DOCKER_HOST=unix:///nowhere/docker.sock sf mine rm --force "$@" >/dev/null 2>&1; }
forget "gc-$$-lost" "gc-$$-stopped"

# A look changes nothing; fresh ones are spared, and those of others need two words.
[[ $(sf mine gc 2>"$work/err" | ours) == "" ]] || fail "fresh machines are found"
grep -q 'too young.*--older-than' "$work/err" || fail "it does not say what it left out: $(cat "$work/err")"
grep -q 'other hosts.*--other-hosts' "$work/err" || fail "it does not tell of other hosts: $(cat "$work/err")"
[[ $(sf mine gc --older-than 0s 2>"$work/err" | ours) == "gc-$$-lost gc-$$-stopped " ]] ||
  fail "found: $(sf mine gc --older-than 0s)"
grep -q 'nothing was changed' "$work/err" || fail "a look does not say that it is one"
[[ $(sf mine gc --older-than 0s --other-hosts 2>/dev/null | ours) == "gc-$$-foreign gc-$$-lost gc-$$-stopped " ]] ||
  fail "with those of others: $(sf mine gc --older-than 0s --other-hosts)"
[[ $(sf mine gc --other-hosts 2>/dev/null | ours) == "" ]] || fail "fresh machines of others are found"
sf mine --json gc --older-than 0s >"$work/look"
python3 - "$work/look" "$lost" "$stopped" "$foreign" "$known" <<'END' || fail "$(cat "$work/look")"
import json, sys
found = {one["sandboxId"]: one for one in json.load(open(sys.argv[1]))["sandboxes"]}
lost, stopped, foreign, known = sys.argv[2:]
assert found[lost]["own"] and found[lost]["running"] and "done" not in found[lost]
assert not found[stopped]["running"]
assert foreign not in found and known not in found
END
for id in "$lost" "$stopped" "$foreign" "$known"; do
  docker inspect "$id" >/dev/null || fail "a look has removed a machine"
done

# With a store of its own a configuration knows other sessions: it owns other machines.
sed "1i session: {store: ./other.db}" "$work/c.yaml" >"$work/d.yaml"
[[ $("$program" --config "$work/d.yaml" --state "$work/mine" gc --older-than 0s </dev/null 2>/dev/null | ours) == "" ]] ||
  fail "another store's sessions are found"

# Adopted under their names, and used: the same machines.
sf mine gc --adopt --older-than 0s >"$work/out"
[[ $(ours <"$work/out") == "gc-$$-lost gc-$$-stopped " ]] || fail "adopted: $(cat "$work/out")"
[[ $(sf mine exec "gc-$$-lost" -- echo again) == again ]] || fail "an adopted session runs nothing"
[[ $(container "gc-$$-lost") == "$lost" ]] || fail "an adopted session has another machine"
[[ $(sf mine exec "gc-$$-stopped" -- echo again) == again ]] || fail "a stopped one does not start"
[[ $(sf mine gc --older-than 0s 2>/dev/null | ours) == "" ]] || fail "adopted ones are found again"
sf mine rm "gc-$$-stopped" >/dev/null
[[ -z $(container "gc-$$-stopped") ]] || fail "rm of an adopted session left its machine"

# Removed; whoever has a session here is not touched, nor what others label alike.
other=$(docker create --label mastra.sandbox=true --label "mastra.sandbox.id=gc-$$-stranger" \
  --label "$label" "$image" true)
forget "gc-$$-lost"
sf mine gc --remove --older-than 0s >"$work/out"
[[ $(ours <"$work/out") == "gc-$$-lost " ]] || fail "removed: $(cat "$work/out")"
! docker inspect "$lost" >/dev/null 2>&1 || fail "what it removed is there"
for id in "$foreign" "$known" "$other"; do
  docker inspect "$id" >/dev/null 2>&1 || fail "it removed what is not its own: $id"
done
[[ $(sf mine exec "gc-$$-known" -- echo here) == here ]] || fail "a known session was harmed"
sf mine --json gc --remove --other-hosts --older-than 0s >"$work/out"
grep -q "\"session\": \"gc-$$-foreign\"" "$work/out" || fail "of another host: $(cat "$work/out")"
! docker inspect "$foreign" >/dev/null 2>&1 || fail "that of the other host is there"
docker inspect "$known" "$other" >/dev/null || fail "it removed too much"
