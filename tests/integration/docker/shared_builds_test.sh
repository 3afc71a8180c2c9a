#!/usr/bin/env bash
# Builds of several hosts at one engine: the same runs once, what a killed host leaves is found by
# the others, a build has a time limit, and old images go. shared_builds_test.sh SANDFORGE on the
# engine of DOCKER_HOST.
set -euo pipefail

program=${1:?}
work=$(mktemp -d)
# What others have at this engine stays.
images() { docker images -aq --no-trunc --filter label=sandforge.template | sort -u; }
containers() {
  { docker ps -aq --filter label=sandforge.build; docker ps -aq --filter label=sandforge.build.claim; } | sort -u
}
images_before=$(images) containers_before=$(containers)
new() { comm -13 <(echo "$2") <("$1") | grep . || true; }
clean_up() {
  new containers "$containers_before" | xargs -r docker rm -f >/dev/null
  for _ in 1 2 3 4 5 6 7 8; do new images "$images_before" | xargs -r docker rmi -f >/dev/null 2>&1 || true; done
  rm -rf "$work"
}
trap clean_up EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
command -v git >/dev/null || { echo "SKIPPED: there is no git"; exit 77; }

git init -q "$work/repo"
echo first >"$work/repo/name"
git -C "$work/repo" add name
git -C "$work/repo" -c user.name=t -c user.email=t@invalid commit -q -m first
# Set-up waits for a file: both ends of a build are where a test wants them.
mkdir "$work/gate"
configure() { # NAME MORE
  cat >"$work/$1.yaml" <<END
sandbox:
  provider: docker
  options:
    image: sandforge-test-busybox
    stopTimeout: 1
    template:
      network: host
      volumes: {/usr: "/usr:ro", /usr/lib: "/lib:ro", /usr/lib64: "/lib64:ro", "$work": "$work"}
      $2
END
}
configure plain ""
configure hurried "buildTimeout: 1"
configure strict "{keepHours: 0, keepNewest: 1}"
sed -i 's/^      {keepHours: 0, keepNewest: 1}/      keepHours: 0\n      keepNewest: 1/' "$work/strict.yaml"
sf() { # CONFIG HOST …
  local config=$1 host=$2
  shift 2
  GIT_TERMINAL_PROMPT=0 "$program" --config "$work/$config.yaml" --state "$work/$host" "$@" </dev/null
}
# A build whose set-up appends to the file $1.runs, and goes on when $1.go is there.
gated() { echo "echo ran >>$work/gate/$1.runs; until [ -e $work/gate/$1.go ]; do sleep 0.1; done"; }
eventually() {
  for _ in $(seq 300); do
    ! "$@" || return 0
    sleep 0.05
  done
  return 1
}
runs() { [[ $(wc -l 2>/dev/null <"$work/gate/$1.runs") == "$2" ]]; }
says() { grep -q "$2" "$1" 2>/dev/null; }
no_container() { [[ -z $(new containers "$containers_before") ]] || fail "a container is left: $1: $(docker ps -a)"; }
repo=file://$work/repo

# Two hosts want the same at once: one builds, the other waits for it and has the same answer.
sf plain one build --repo "$repo" --setup "$(gated twice)" >"$work/one.out" 2>"$work/one.log" &
one=$!
eventually runs twice 1 || fail "the first does not build: $(cat "$work/one.log")"
sf plain two build --repo "$repo" --setup "$(gated twice)" >"$work/two.out" 2>"$work/two.log" &
two=$!
eventually says "$work/two.log" 'another host builds the same' || fail "the second does not wait: $(cat "$work/two.log")"
sf plain three gc --remove >"$work/out"
! grep -q 'build' "$work/out" || fail "a build that runs was taken for a remain: $(cat "$work/out")"
touch "$work/gate/twice.go"
wait "$one" || fail "the first: $(cat "$work/one.log")"
wait "$two" || fail "the second: $(cat "$work/two.log")"
[[ -s $work/one.out && $(cat "$work/one.out") == "$(cat "$work/two.out")" ]] || fail "they have different templates"
runs twice 1 || fail "it ran $(wc -l <"$work/gate/twice.runs") times"
no_container "after two hosts"

# The first is killed in it: the second takes over, whatever stays of the first.
sf plain one build --repo "$repo" --setup "$(gated killed)" >/dev/null 2>"$work/one.log" &
eventually runs killed 1 || fail "the first does not build: $(cat "$work/one.log")"
sf plain two build --repo "$repo" --setup "$(gated killed)" >"$work/two.out" 2>"$work/two.log" &
two=$!
eventually says "$work/two.log" 'another host builds the same' || fail "the second does not wait: $(cat "$work/two.log")"
pid=$(pgrep -f -- "--state $work/one build") && kill -9 "$pid"
eventually runs killed 2 || fail "nobody takes over: $(cat "$work/two.log")"
# The first one's container still runs its step: that is what nobody needs. The second one's is.
left=$(new containers "$containers_before" | wc -l)
[[ $left == 3 ]] || fail "$left containers, not the claim and two steps: $(docker ps -a)"
sf plain three --json gc >"$work/look"
[[ $(grep -c '"build container"' "$work/look") == 1 ]] || fail "one remain, not: $(cat "$work/look")"
sf plain three gc --remove >"$work/out"
grep -q 'build container.*does not build any more' "$work/out" || fail "not removed: $(cat "$work/out")"
[[ $(new containers "$containers_before" | wc -l) == 2 ]] || fail "removed too little or too much: $(docker ps -a)"
touch "$work/gate/killed.go"
wait "$two" || fail "the second: $(cat "$work/two.log")"
no_container "after a take-over"

# A time limit.
code=0
sf hurried one build --repo "$repo" --setup 'exec sleep 600' >"$work/out" 2>&1 || code=$?
[[ $code == 125 ]] || fail "a build that takes too long ends with $code"
grep -q 'longer than 1 s, its time limit' "$work/out" || fail "it does not say why: $(cat "$work/out")"
no_container "after a time limit"

# By default all of that is kept; else the newest of the family, and what containers use.
newest=$(cat "$work/two.out")
older=$(cat "$work/one.out")
sf plain one gc >"$work/out" 2>&1 || fail "$(cat "$work/out")"
! grep -q 'image' "$work/out" || fail "what is young is old: $(cat "$work/out")"
user=$(docker create "sandforge-template:${older:0:40}" true)
sf strict one --json gc >"$work/look" || fail "$(cat "$work/look")"
! grep -q "${older:0:40}\|${newest:0:40}" "$work/look" || fail "an image in use, or the newest: $(cat "$work/look")"
docker rm "$user" >/dev/null
sf strict one gc >"$work/out" 2>&1 || fail "$(cat "$work/out")"
grep -q "template image *sandforge-template:${older:0:40}" "$work/out" || fail "not found: $(cat "$work/out")"
docker image inspect "sandforge-template:${older:0:40}" >/dev/null || fail "a look has removed an image"
sf strict one gc --remove >"$work/out"
! docker image inspect "sandforge-template:${older:0:40}" >/dev/null 2>&1 || fail "the old image is there"
docker image inspect "sandforge-template:${newest:0:40}" >/dev/null || fail "the newest one is gone"
sf strict one --json gc >"$work/look" || fail "$(cat "$work/look")"
! grep -q 'image' "$work/look" || fail "something was left: $(cat "$work/look")"
# What it kept is whole: the next build of it is there at once.
[[ $(sf plain one build --repo "$repo" --setup "$(gated killed)" 2>"$work/log") == "$newest" ]] ||
  fail "the newest is not whole: $(cat "$work/log")"

# Volumes of guests of other versions.
volume=sandforge-guest-0123$$
docker volume create --label "sandforge.guest=0123$$" "$volume" >/dev/null
user=$(docker create -v "$volume:/v" sandforge-test-busybox true)
! sf strict one gc 2>/dev/null | grep -q "$volume" || fail "a volume in use is found"
docker rm "$user" >/dev/null
! sf plain one gc 2>/dev/null | grep -q "$volume" || fail "a fresh volume is found"
sf strict one gc --remove 2>/dev/null | grep -q "guest volume *$volume" || fail "an unused volume is not removed"
! docker volume inspect "$volume" >/dev/null 2>&1 || fail "the volume is there"
