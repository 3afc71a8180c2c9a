# To be sourced: a repository of this machine that only a token may read, over plain HTTP.

# serve_private WORK TOKEN sets url and server, a process that the caller ends. $WORK/seed is its
# working tree.
serve_private() {
  local work=$1 token=$2 port
  mkdir "$work/www"
  git init -q "$work/seed"
  echo "$token" | sha256sum >"$work/seed/name"
  git -C "$work/seed" add name
  git -C "$work/seed" -c user.name=t -c user.email=t@invalid commit -q -m first
  git clone -q --bare "$work/seed" "$work/www/private"
  git -C "$work/www/private" update-server-info
  echo "/:x-access-token:$token" >"$work/httpd.conf"
  for _ in $(seq 20); do
    port=$((20000 + RANDOM % 20000))
    busybox httpd -f -p "127.0.0.1:$port" -h "$work/www" -c "$work/httpd.conf" &
    server=$!
    until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || ! kill -0 "$server" 2>/dev/null; do :; done
    ! kill -0 "$server" 2>/dev/null || break
  done
  url=http://127.0.0.1:$port/private
  ! git -c credential.helper= ls-remote "$url" >/dev/null 2>&1 </dev/null ||
    fail "the repository is not private: nothing is tested"
}
