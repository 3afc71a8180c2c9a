#!/usr/bin/env bash
# Builds of a private repository by `sandforge build`, and what is left of its token: nothing.
# builds_test.sh SANDFORGE on the engine of DOCKER_HOST.
set -euo pipefail

program=${1:?}
work=$(mktemp -d)
canary=canary$$secret$RANDOM
server=
# What others have at this engine stays.
images() { docker images -q sandforge-template | sort -u; }
containers() { docker ps -aq --filter label=sandforge.build | sort -u; }
images_before=$(images) containers_before=$(containers)
new() { comm -13 <(echo "$2") <("$1") | grep . || true; }
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true
  new containers "$containers_before" | xargs -r docker rm -f >/dev/null
  new images "$images_before" | xargs -r docker rmi -f >/dev/null
  rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
command -v git >/dev/null || { echo "SKIPPED: there is no git"; exit 77; }

# shellcheck source=private_repository.sh
. "$(dirname "${BASH_SOURCE[0]}")/private_repository.sh"
serve_private "$work" "$canary"

cat >"$work/c.yaml" <<END
sandbox:
  provider: docker
  options:
    image: sandforge-test-busybox
    stopTimeout: 1
    template:
      network: host
      volumes: {/usr: "/usr:ro", /usr/lib: "/lib:ro", /usr/lib64: "/lib64:ro"}
END
sf() {
  GIT_TERMINAL_PROMPT=0 TOKEN=$canary "$program" --config "$work/c.yaml" --state "$work/state" "$@" \
    </dev/null
}
build() { sf build --repo "$url" --repo-token '${TOKEN}' "$@"; }
no_container() {
  [[ -z $(new containers "$containers_before") ]] || fail "a build container is left: $1"
}
absent() { # FILE WHERE
  local form
  for form in "$canary" "$(printf %s "$canary" | base64 -w0)" \
    "$(printf %s "x-access-token:$canary" | base64 -w0)"; do
    ! grep -aqF -e "$form" "$1" || fail "the token is in $2"
  done
}

# Whoever lists processes meanwhile, on the machine and beside the commands of the repository.
touch "$work/watching"
while [[ -e $work/watching ]]; do
  cat /proc/[0-9]*/cmdline || true  # one that has ended meanwhile
done >"$work/cmdlines" 2>/dev/null &
watcher=$!
scanner='(while :; do cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline >>scanned; sleep 1; done) 2>/dev/null & sleep 2; grep -rs . /tmp /root /home >>scanned; true'
id=$(build --setup "$scanner" 2>"$work/log") || fail "$(cat "$work/log")"
rm "$work/watching"
wait "$watcher" || true
grep -qa "git.clone.*${url#http://}" "$work/cmdlines" || fail "no process was seen: nothing is tested"
absent "$work/cmdlines" "the arguments of a process"
absent "$work/log" "the log"
no_container "after a build"

image=sandforge-template:${id:0:40}
container=$(docker create "$image" true)
docker cp "$container:/workspace/private/scanned" "$work/scanned" >/dev/null
docker cp "$container:/workspace/private/name" "$work/name" >/dev/null
docker cp "$container:/workspace/private/.git/config" "$work/config" >/dev/null
docker rm "$container" >/dev/null
cmp -s "$work/name" "$work/seed/name" || fail "the image has not the repository's files"
[[ -s $work/scanned ]] || fail "the scanner found nothing at all: nothing is tested"
absent "$work/scanned" "what the repository's command could find"
absent "$work/config" ".git/config"
docker save "$image" >"$work/image.tar"
absent "$work/image.tar" "a layer, or the image's configuration"
docker history --no-trunc "$image" >"$work/history"
absent "$work/history" "the history"
docker images -aq | sort -u | xargs docker inspect >"$work/images"
absent "$work/images" "an image"
for file in "$work"/state/*; do [[ ! -f $file ]] || absent "$file" "$file"; done

# The same again is there, and what a later host reads.
[[ $(build --setup "$scanner" 2>/dev/null) == "$id" ]] || fail "the same build has another template"
sf build --list | grep -q "$id *ready" || fail "the list has no such build: $(sf build --list)"

code=0
build --setup 'echo about to fail; exit 17' >"$work/out" 2>&1 || code=$?
[[ $code == 125 ]] || fail "a build that fails ends with $code"
grep -q 'exited with 17' "$work/out" || fail "it does not say why: $(cat "$work/out")"
grep -q 'about to fail' "$work/out" || fail "it does not show its output: $(cat "$work/out")"
no_container "after a build that failed"
sf build --list | grep -q failed || fail "a later host does not know that it failed"

# An interrupt cancels.
mkfifo "$work/says"
GIT_TERMINAL_PROMPT=0 TOKEN=$canary setsid "$program" --config "$work/c.yaml" --state "$work/state" \
  build --repo "$url" --repo-token '${TOKEN}' --setup 'echo it sleeps; exec sleep 600' \
  >"$work/cancelled" 2>"$work/says" </dev/null &
building=$!
exec 4<"$work/says"
while read -r line <&4; do [[ $line != "it sleeps" ]] || break; done
kill -TERM "$building"
cat <&4 >/dev/null
code=0
wait "$building" || code=$?
[[ $code == 143 ]] || fail "an interrupted build ends with $code"
no_container "after a build that was interrupted"
