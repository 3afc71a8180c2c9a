#!/usr/bin/env bash
# Templates that somebody wrote down, of `sandforge build`, `start` and `run`. template_test.sh
# SANDFORGE on the engine of DOCKER_HOST.
set -euo pipefail

program=${1:?}
work=$(mktemp -d)
label=sandforge-test=$$
images() { docker images -aq --no-trunc --filter label=sandforge.template | sort -u; }
images_before=$(images)
new_images() { comm -13 <(echo "$images_before") <(images) | grep . || true; }
clean_up() {
  docker ps -aq --filter "label=$label" | xargs -r docker rm -f >/dev/null
  for _ in 1 2 3 4 5; do new_images | xargs -r docker rmi -f >/dev/null 2>&1 || true; done
  rm -rf "$work"
}
trap clean_up EXIT

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
    template: {network: none}
END
sf() { "$program" --config "$work/c.yaml" --state "$work/state" "$@" </dev/null; }
template() { # FILE COMMAND
  cat >"$work/$1" <<END
{"schemaVersion": 1, "operations": [
  {"method": "from", "args": ["sandforge-test-busybox"]},
  {"method": "runCmd", "args": ["$2"]}]}
END
}
template one.json "echo made $$ >/made"
session=template-$$

# Built by the first who wants it, and then booted; the answer says so.
sf --json start --session "$session" --template "$work/one.json" >"$work/start" 2>"$work/log" ||
  fail "$(cat "$work/start" "$work/log")"
grep -q '"provenance": "exact"' "$work/start" || fail "booted: $(cat "$work/start")"
grep -q 'step 1 of 1' "$work/log" || fail "nothing was built: $(cat "$work/log")"
[[ $(sf exec "$session" -- cat /made) == "made $$" ]] || fail "it is not what the template makes"

# Nothing of that is left behind, whatever its labels say: neither the session's machine, nor what
# others made of the images.
image=sandforge-template:$(docker images sandforge-template --format '{{.Tag}}' | head -1)
machine=$(docker ps -q --no-trunc --filter "label=mastra.sandbox.id=$session")
booted=$(docker run -d --network none --label "$label" "$image" sleep 600)
docker commit "$machine" "sandforge-template:copy-$$" >/dev/null
copied=$(docker run -d --network none --label "$label" --entrypoint sleep "sandforge-template:copy-$$" 600)
sf --json gc --older-than 0s --other-hosts >"$work/gc"
! grep -q -e "$booted" -e "$copied" -e "$machine" "$work/gc" || fail "gc would remove: $(cat "$work/gc")"
"$program" --config "$work/c.yaml" --state "$work/other" gc --remove --older-than 200h --other-hosts \
  </dev/null >/dev/null
docker inspect "$machine" "$booted" "$copied" >/dev/null || fail "gc has removed what runs"
docker rm -f "$booted" "$copied" >/dev/null
docker rmi "sandforge-template:copy-$$" >/dev/null

id=$(sf build --template "$work/one.json" 2>"$work/log")
! grep -q step "$work/log" || fail "it is built twice: $(cat "$work/log")"
docker image inspect "sandforge-template:${id:0:40}" >/dev/null || fail "no image of $id"

# Its next machine, also of another host program, boots it again; another template is not applied.
sf stop "$session" >/dev/null
docker ps -aq --filter "label=mastra.sandbox.id=$session" | xargs docker rm -f >/dev/null
[[ $(sf exec "$session" -- cat /made) == "made $$" ]] || fail "its next machine is another one"
template two.json "echo other >/made"
[[ $(sf run --session "$session" --template "$work/two.json" -- cat /made 2>"$work/err") == "made $$" ]] ||
  fail "another template was booted"
grep -q -e '--template was not applied' "$work/err" || fail "nothing says so: $(cat "$work/err")"
[[ $(sf run --template "$work/two.json" -- cat /made 2>/dev/null) == other ]] || fail "run boots another one"

# What cannot be built makes no session.
template bad.json "echo about to fail; exit 3"
code=0
sf start --session "$session-bad" --template "$work/bad.json" >"$work/out" 2>&1 || code=$?
[[ $code == 125 ]] && grep -q 'exited with 3' "$work/out" || fail "$code: $(cat "$work/out")"
! sf ps | grep -q "$session-bad" || fail "a session was made"
echo '{"operations": [{"method": "none"}]}' >"$work/bad.json"
code=0
sf build --template "$work/bad.json" >"$work/out" 2>&1 || code=$?
[[ $code == 125 ]] && grep -q "bad.json: " "$work/out" || fail "$code: $(cat "$work/out")"
