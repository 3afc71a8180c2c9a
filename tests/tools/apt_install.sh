#!/usr/bin/env bash
# Installs those of the named Debian packages that are missing: apt_install.sh PACKAGE …
# As root, or through sudo; never asks anything.
#
# PACKAGE:unpack is a package of headers whose dependencies are not wanted (libvalijson-dev would
# bring Qt and Mesa, some 350 MB): where it is not installed it is unpacked into build/deps, where
# CMake looks for it.
set -euo pipefail

deps=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/deps

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

missing=()
unpack=()
for package in "$@"; do
  name=${package%:unpack}
  if is_installed "$name"; then
    continue
  elif [[ $package == "$name" ]]; then
    missing+=("$name")
  elif [[ ! -e $deps/.$name ]]; then
    unpack+=("$name")
  fi
done
if [[ ${#missing[@]} -eq 0 && ${#unpack[@]} -eq 0 ]]; then
  echo "all $# packages are there"
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "need root or sudo to install: ${missing[*]} ${unpack[*]}" >&2
    exit 1
  fi
  as_root=(sudo --preserve-env=DEBIAN_FRONTEND)
fi
export DEBIAN_FRONTEND=noninteractive
apt() { "${as_root[@]}" apt-get -q -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" </dev/null; }

apt update
if [[ ${#missing[@]} -gt 0 ]]; then
  echo "installing: ${missing[*]}"
  apt install --no-install-recommends "${missing[@]}"
fi
for name in "${unpack[@]}"; do
  echo "unpacking: $name"
  work=$(mktemp -d)
  chmod 755 "$work"  # apt downloads as a user of its own
  (cd "$work" && apt-get -q -o Acquire::Retries=3 -o APT::Sandbox::User=root download "$name")
  mkdir -p "$deps"
  dpkg -x "$work"/*.deb "$deps"
  touch "$deps/.$name"
  rm -rf "$work"
done
