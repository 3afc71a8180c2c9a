#!/usr/bin/env bash
# Installs those of the named Debian packages that are missing: apt_install.sh PACKAGE …
# As root, or through sudo; never asks anything.
set -euo pipefail

missing=()
for package in "$@"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "all $# packages are installed"
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "need root or sudo to install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo --preserve-env=DEBIAN_FRONTEND)
fi
export DEBIAN_FRONTEND=noninteractive
echo "installing: ${missing[*]}"
apt() { "${as_root[@]}" apt-get -q -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@"; }
apt update </dev/null
apt install --no-install-recommends "${missing[@]}" </dev/null
