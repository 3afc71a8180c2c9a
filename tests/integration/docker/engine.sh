#!/usr/bin/env bash
# One engine for all tests that need a real one:
#
#   engine.sh start FOLDER [OPTION …]  starts it, and makes the image sandforge-test-busybox
#   engine.sh run FOLDER CMD …         runs CMD with DOCKER_HOST set
#   engine.sh stop FOLDER              ends it, and removes everything of it
#   engine.sh kill FOLDER              SIGKILL for a dockerd of its own and its containerd
#   engine.sh again FOLDER [OPTION …]  starts it again
#
# OPTIONs are dockerd's. With SANDFORGE_ENGINE_SIZE=64m what it stores has no more room than that.
# Where DOCKER_HOST names an engine, that one is used, and only the image and the volumes of guests
# are removed again. Else a dockerd of its own is started, which needs root. FOLDER keeps what the
# calls must know of each other. Exit code 77: skipped, with the reason.
set -euo pipefail

image=sandforge-test-busybox
verb=${1:?} state=${2:?}
shift 2

skip() {
  mkdir -p "$state"
  echo "$*" >"$state/skipped"
  echo "SKIPPED: $*"
  exit 77
}

# The daemon with its containerd, and nothing of it on the machine's network.
start_daemon() {
  local place
  place=$(mktemp -d /tmp/sandforge-engine-XXXXXX)
  echo "$place" >"$state/place"
  mkdir "$place/data"
  [[ -z ${SANDFORGE_ENGINE_SIZE:-} ]] ||
    mount -t tmpfs -o "size=$SANDFORGE_ENGINE_SIZE" tmpfs "$place/data"
  launch_daemon "$@" && return 0
  local last
  last=$(tail -1 "$place/log")
  stop_daemon
  skip "dockerd does not start here: $last"
}

launch_daemon() {
  local place
  place=$(cat "$state/place")
  # Of a killed one: it may still be there as a zombie.
  rm -f "$place/pid" "$place/exec/containerd/containerd.pid"
  setsid dockerd --host "unix://$place/docker.sock" --data-root "$place/data" \
    --exec-root "$place/exec" --pidfile "$place/pid" --bridge none --iptables=false "$@" \
    >"$place/log" 2>&1 </dev/null &
  export DOCKER_HOST=unix://$place/docker.sock
  for _ in $(seq 300); do
    ! docker version >/dev/null 2>&1 || return 0
    kill -0 $! 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}

stop_daemon() {
  local place pid
  place=$(cat "$state/place")
  pid=$(cat "$place/pid" 2>/dev/null || true)
  if [[ -n $pid ]]; then
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 300); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null || true
  fi
  awk -v "below=$place/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac |
    while read -r mounted; do umount -l "$mounted" || true; done
  rm -rf "$place"
}

# A link for each program of busybox; a home and a working directory that any user may write to.
import_image() {
  local root
  root=$(mktemp -d)
  mkdir -p "$root"/{bin,etc,tmp,workspace,home/user}
  cp "$(command -v busybox)" "$root/bin/busybox"
  local program
  for program in $(busybox --list); do
    [[ $program == busybox ]] || ln -s busybox "$root/bin/$program"
  done
  # busybox has none.
  cat >"$root/bin/printenv" <<'END'
#!/bin/awk -f
BEGIN {
  if (ARGC == 1) for (name in ENVIRON) print name "=" ENVIRON[name]
  for (i = 1; i < ARGC; ++i) {
    if (!(ARGV[i] in ENVIRON)) exit 1
    print ENVIRON[ARGV[i]]
  }
}
END
  chmod 755 "$root/bin/printenv"
  printf 'root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\nuser:x:1000:\n' >"$root/etc/group"
  chmod 1777 "$root/tmp" "$root/workspace" "$root/home/user"
  tar --owner 0 --group 0 --numeric-owner -C "$root" -c . | docker import - "$image" >/dev/null
  rm -rf "$root"
}

case $verb in
  start)
    rm -rf "$state"
    mkdir -p "$state"
    command -v docker >/dev/null || skip "there is no docker program (package docker.io)"
    [[ $(command -v busybox) ]] || skip "there is no busybox (package busybox-static)"
    if [[ -n ${DOCKER_HOST:-} ]]; then
      docker version >/dev/null 2>&1 || skip "DOCKER_HOST names no engine that answers: $DOCKER_HOST"
    elif [[ $(id -u) -ne 0 ]]; then
      skip "no DOCKER_HOST is set, and an engine of one's own needs root"
    elif ! command -v dockerd >/dev/null; then
      skip "no DOCKER_HOST is set, and there is no dockerd (package docker.io)"
    else
      start_daemon "$@"
    fi
    echo "$DOCKER_HOST" >"$state/host"
    import_image
    ;;
  run)
    if [[ ! -e $state/host ]]; then
      echo "SKIPPED: $(cat "$state/skipped" 2>/dev/null || echo "no engine was started")"
      exit 77
    fi
    DOCKER_HOST=$(cat "$state/host")
    export DOCKER_HOST
    exec "$@"
    ;;
  kill)
    place=$(cat "$state/place")
    kill -9 "$(cat "$place/pid")"
    kill -9 "$(cat "$place/exec/containerd/containerd.pid")" 2>/dev/null || true
    ;;
  again)
    launch_daemon "$@" || { tail -3 "$(cat "$state/place")/log" >&2; exit 1; }
    ;;
  stop)
    if [[ -e $state/place ]]; then
      # One that was killed left processes of its containers, which only it can end.
      DOCKER_HOST=unix://$(cat "$state/place")/docker.sock docker version >/dev/null 2>&1 ||
        launch_daemon || true
      stop_daemon
    elif [[ -e $state/host ]]; then
      DOCKER_HOST=$(cat "$state/host")
      export DOCKER_HOST
      docker rmi -f "$image" >/dev/null || true
      docker volume ls -q --filter label=sandforge.guest | xargs -r docker volume rm >/dev/null || true
    fi
    rm -rf "$state"
    ;;
  *)
    echo "unknown verb: $verb" >&2
    exit 2
    ;;
esac
