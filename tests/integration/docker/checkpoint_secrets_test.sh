#!/usr/bin/env bash
# What an engine keeps of a checkpoint: no value that was given to the container.
# checkpoint_secrets_test.sh SANDFORGE on the engine of DOCKER_HOST.
set -euo pipefail

program=${1:?}
work=$(mktemp -d)
label=sandforge-test=$$
session=secrets-$$
canary=canary-$$-secret
trap 'docker ps -aq --filter "label=$label" | xargs -r docker rm -f >/dev/null
  docker images -q --filter "label=sandforge.checkpoint=$session" | xargs -r docker rmi -f >/dev/null
  rm -rf "$work"' EXIT

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
    env: {OPTION_SECRET: "$canary-option"}
    tmpfs: {/scratch: ""}
    labels: {sandforge-test: "$$"}
END
sf() { "$program" --config "$work/c.yaml" --state "$work/state" "$@" </dev/null; }
images() { docker images -aq --no-trunc --filter "label=sandforge.checkpoint=$session" | sort -u; }

sf start --session "$session" --env START_SECRET="$canary-start" >/dev/null
container=$(docker ps -aq --no-trunc --filter "label=mastra.sandbox.id=$session")
docker inspect "$container" | grep -q "$canary" || fail "the container has no canary: nothing is tested"
sf exec "$session" -- sh -c 'echo kept > file'
sf snapshot "$session" >/dev/null 2>"$work/err" || fail "$(cat "$work/err")"
grep -q /scratch "$work/err" || fail "nothing says that tmpfs is not captured: $(cat "$work/err")"
[[ $(docker inspect -f '{{.State.Paused}}' "$container") == false ]] || fail "it is still paused"

# Everything that the engine has of the image, also what its newer versions do not show.
image=$(images)
[[ $(wc -l <<<"$image") -eq 1 && -n $image ]] || fail "there is not one image: $image"
docker save "$image" -o "$work/image.tar"
mkdir "$work/image"
tar -C "$work/image" -xf "$work/image.tar"
{
  docker inspect "$image"
  docker history --no-trunc "$image"
  cat "$work"/image/*.json
} >"$work/told"
! grep -q "$canary" "$work/told" || fail "a value of the environment is in the image"
! grep -rq "$canary" "$work/image" || fail "a value of the environment is in a layer"

# A second one replaces it, and leaves one image.
sf exec "$session" -- sh -c 'echo more >> file'
sf snapshot "$session" >/dev/null 2>&1
[[ $(images) != "$image" && $(images | wc -l) -eq 1 ]] || fail "the first one was not replaced"

# Destroyed and made anew: its files, the environment of this start, no one else's.
sf rm "$session" >/dev/null
sf start --session "$session" >/dev/null
[[ $(sf exec "$session" -- cat file) == $'kept\nmore' ]] || fail "the files were not kept"
[[ $(sf exec "$session" --shell 'echo "${START_SECRET-none}"') == none ]] || fail "the variable came back"

# Replaced while a container needs it: it goes with that container.
old=$(images)
sf snapshot "$session" >/dev/null 2>&1
docker inspect "$old" >/dev/null || fail "the image that the container was made from is gone"
sf rm "$session" >/dev/null
! docker inspect "$old" >/dev/null 2>&1 || fail "an image without a name is left"
sf start --session "$session-other" >/dev/null
sf snapshot --remove "$session" "$session-other" >/dev/null
sf rm "$session-other" >/dev/null
[[ -z $(images) ]] || fail "the checkpoint was not removed"
echo "all of it holds"
