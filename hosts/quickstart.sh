#!/usr/bin/env bash
# From a fresh Debian 12 to a command that ran in a sandbox.
#
#   hosts/quickstart.sh                     install packages, build, run the main job
#   hosts/quickstart.sh --no-install        the same with the packages that are there
#   hosts/quickstart.sh --print-packages    only name the Debian packages that a build needs
#
# Run as root, or as a user who may use sudo (for the packages only). The main job runs on this
# repository itself, with the local provider: a clone into a sandbox, a set-up command, a command;
# then a session that later calls find again.
set -euo pipefail

build_packages=(
  g++ cmake ninja-build ccache pkg-config git ca-certificates
  libboost1.81-dev rapidjson-dev libvalijson-dev:unpack libyaml-cpp-dev libre2-dev libcli11-dev
  libfmt-dev libssl-dev libsqlite3-dev
)

install=yes
case ${1:-} in
  "") ;;
  --no-install) install=no ;;
  --print-packages)
    printf '%s\n' "${build_packages[@]}"
    exit 0
    ;;
  *)
    sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
started=$SECONDS

step() { printf '\n==> %s (%d s)\n' "$1" "$((SECONDS - started))"; }
# Shows a command the way a person would type it, then runs it.
show() {
  local word
  printf '\n$' >&2
  for word in "$@"; do
    [[ $word =~ ^[A-Za-z0-9_./:=@,-]+$ ]] || word=${word@Q}
    printf ' %s' "$word" >&2
  done
  printf '\n' >&2
  "$@"
}

if [[ $install == yes ]]; then
  step "Packages"
  tests/tools/apt_install.sh "${build_packages[@]}"
fi

step "Build"
cmake --preset release -DSANDFORGE_BUILD_TESTS=OFF -DSANDFORGE_BUILD_BENCH=OFF
cmake --build --preset release
export PATH="$root/build/release/bin:$PATH"

# Everything that the job leaves behind lies in one folder, which goes away at the end.
work=$(mktemp -d)
cleanup() {
  [[ -z ${session:-} ]] || sandforge rm "$session" >/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
export SANDFORGE_LOCAL_ROOT=$work/sandboxes SANDFORGE_STATE_DIR=$work/state
unset MASTRACODE_LOCAL_SANDBOX_ROOT
# As root on somebody else's checkout: git reads another user's repository only where that is said,
# and it listens to the home folder alone.
if [[ $(stat -c %u "$root") != "$(id -u)" ]]; then
  mkdir "$work/home"
  export HOME=$work/home
  git config --global --add safe.directory '*'
fi

step "The main job: this repository in a sandbox"
show sandforge run --provider local --repo "file://$root" --setup 'ls' -- git log --oneline -1

step "A session that later calls find again"
printf '\n$ sandforge start --provider local --repo file://%s\n' "$root"
session=$(sandforge start --provider local --repo "file://$root")
echo "$session"
show sandforge exec "$session" -- git log --oneline -1
show sandforge exec "$session" -- sh -c 'echo "kept by the session" > note.txt'
show sandforge exec "$session" -- cat note.txt
show sandforge ps
show sandforge rm "$session"
session=

step "Done"
echo "The program is build/release/bin/sandforge; README.md says where to go next."
