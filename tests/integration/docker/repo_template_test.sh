#!/usr/bin/env bash
# Sessions of a repository boot its template where that was built. repo_template_test.sh SANDFORGE
# on the engine of DOCKER_HOST.
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
command -v git >/dev/null || { echo "SKIPPED: there is no git"; exit 77; }

# The image has no git: builders and sandboxes see that of this machine, and the repository.
commit() {
  echo "$1" >"$work/origin/name"
  git -C "$work/origin" add .
  git -C "$work/origin" -c user.name=Ada -c user.email=ada@example.org commit -q -m "$1"
}
git init -q -b main "$work/origin"
commit first
chmod 755 "$work"
volumes="{/usr: \"/usr:ro\", /usr/lib: \"/lib:ro\", /usr/lib64: \"/lib64:ro\", $work/origin: \"$work/origin:ro\"}"
cat >"$work/c.yaml" <<END
sandbox:
  provider: docker
  options:
    image: sandforge-test-busybox
    networkIsolation: NONE
    stopTimeout: 1
    labels: {sandforge-test: "$$"}
    volumes: $volumes
    template: {network: none, volumes: $volumes}
END
sf() { "$program" --config "$work/c.yaml" --state "$work/state" "$@" </dev/null; }
setup='echo set up >>../setups'
start() { sf --json start --session "$1" --repo "file://$work/origin" --setup "$setup" >"$work/start" || fail "$(cat "$work/start")"; }
booted() { grep -q "\"provenance\": \"$1\"" "$work/start" || fail "$1 was expected: $(cat "$work/start")"; }
setups() { sf exec "$1" -- sh -c 'grep -c . ../setups'; }

# None was built: the base, with everything done in the sandbox.
session=repo-$$
start "$session-1"
booted base
[[ $(setups "$session-1") == 1 ]] || fail "the set-up did not run once"
[[ -z $(new_images) ]] || fail "a start began a build"

sf build --repo "file://$work/origin" --setup "$setup" >/dev/null 2>"$work/log" || fail "$(cat "$work/log")"
start "$session-2"
booted exact
[[ $(setups "$session-2") == 1 ]] || fail "what the template did is done again"
[[ $(sf exec "$session-2" -- cat name) == first ]] || fail "it has not the repository's files"

# Of a later commit no template was built.
commit second
start "$session-3"
booted base
[[ $(sf exec "$session-3" -- cat name) == second ]] || fail "it has not the later files"
