#!/usr/bin/env bash
# An engine over TLS, by DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH: the right certificates,
# those of another authority, none. tls_test.sh SANDFORGE, with an engine of its own.
set -euo pipefail

program=${1:?}
here=$(dirname "${BASH_SOURCE[0]}")
unset DOCKER_HOST DOCKER_TLS_VERIFY DOCKER_CERT_PATH
work=$(mktemp -d)
trap '"$here/engine.sh" stop "$work/engine" || true; rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
command -v openssl >/dev/null || { echo "SKIPPED: there is no openssl"; exit 77; }

# The authority $1.
authority() {
  mkdir "$work/$1"
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=authority $1" \
    -keyout "$work/$1/ca-key.pem" -out "$work/$1/ca.pem" 2>/dev/null
}
# A certificate of the authority $1 for $2, by what $3 says of it, as $1/$4.pem with its key.
certificate() {
  openssl req -newkey rsa:2048 -nodes -subj "/CN=$2" -keyout "$work/$1/$4-key.pem" \
    -out "$work/request.pem" 2>/dev/null
  openssl x509 -req -in "$work/request.pem" -days 2 -CA "$work/$1/ca.pem" -CAkey "$work/$1/ca-key.pem" \
    -set_serial "$RANDOM" -extfile <(echo "$3") -out "$work/$1/$4.pem" 2>/dev/null
}
# Certificates as DOCKER_CERT_PATH wants them: folder $1, authority of the engine $2, of the client $3.
folder() {
  mkdir "$work/$1"
  cp "$work/$2/ca.pem" "$work/$1/ca.pem"
  cp "$work/$3/client.pem" "$work/$1/cert.pem"
  cp "$work/$3/client-key.pem" "$work/$1/key.pem"
}
authority own
authority other
certificate own engine "subjectAltName=IP:127.0.0.1" server
certificate own client "extendedKeyUsage=clientAuth" client
certificate other client "extendedKeyUsage=clientAuth" client
folder right own own
folder wrong-engine other own
folder wrong-client own other
mkdir "$work/none"

for _ in $(seq 20); do
  port=$((20000 + RANDOM % 20000))
  ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || continue
  break
done
"$here/engine.sh" start "$work/engine" --host "tcp://127.0.0.1:$port" --tlsverify \
  --tlscacert "$work/own/ca.pem" --tlscert "$work/own/server.pem" --tlskey "$work/own/server-key.pem"

cat >"$work/c.yaml" <<'END'
sandbox:
  provider: docker
  options: {image: sandforge-test-busybox, networkIsolation: NONE, stopTimeout: 1}
END
# With the certificates of the folder $1, for the engine at $2.
sf() {
  local folder=$1 engine=$2
  shift 2
  DOCKER_HOST=tcp://$engine:$port DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=$work/$folder \
    timeout 60 "$program" --config "$work/c.yaml" --state "$work/state" "$@" </dev/null
}
refused() { # REASON WORDS FOLDER ENGINE
  local code=0
  sf "$3" "$4" --json start --session refused >"$work/out" 2>&1 || code=$?
  [[ $code == 125 ]] || fail "$3 at $4 ended with $code: $(cat "$work/out")"
  grep -q "\"reason\": \"$1\"" "$work/out" || fail "$3 at $4: no $1: $(cat "$work/out")"
  grep -qi "$2" "$work/out" || fail "$3 at $4 does not say $2: $(cat "$work/out")"
}

sf right 127.0.0.1 start --session tls --env SECRET=canary >/dev/null
[[ $(sf right 127.0.0.1 exec tls --shell 'echo "$SECRET"') == canary ]] || fail "no command"
head -c 3000000 /dev/urandom >"$work/blob"
sf right 127.0.0.1 cp "$work/blob" tls:/workspace/blob >/dev/null
sf right 127.0.0.1 cp tls:/workspace/blob "$work/back" >/dev/null
cmp "$work/blob" "$work/back" || fail "a file came back changed"
[[ $(sf right 127.0.0.1 exec tls -- sh -c 'head -c 50000000 /dev/zero' | wc -c) == 50000000 ]] ||
  fail "output was lost"

refused docker.tls "certificate" wrong-engine 127.0.0.1
refused docker.tls "certificate" right localhost
refused docker.tls "certificate" wrong-client 127.0.0.1
refused docker.certificate "cannot read $work/none/ca.pem" none 127.0.0.1
code=0
DOCKER_HOST=tcp://127.0.0.1:$port "$program" --config "$work/c.yaml" --state "$work/state" --json \
  start --session refused >"$work/out" 2>&1 || code=$?
[[ $code == 125 ]] || fail "without TLS it ended with $code: $(cat "$work/out")"
grep -q "DOCKER_TLS_VERIFY" "$work/out" || fail "without TLS it does not say what to do: $(cat "$work/out")"

sf right 127.0.0.1 rm tls >/dev/null
DOCKER_HOST=$(cat "$work/engine/host")
export DOCKER_HOST
[[ -z $(docker ps -aq) ]] || fail "a container is left"
echo "all of it holds"
