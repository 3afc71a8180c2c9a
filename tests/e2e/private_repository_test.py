"""A repository behind a token, also when what an earlier try of set-up left is watching for it."""

import base64
import os
import socket
import subprocess
import threading

from support import processes
from support.main import main

TOKEN = "s3cr3t-t0ken-0123456789"
BASIC = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
HOST = {"GIT_TOKEN": TOKEN}

# Notes what it finds in the environments of others, and how often it has looked at all of them.
SCANNER = """
echo $$ >"$1/pid"
while :; do
  for file in /proc/[0-9]*/environ; do
    tr '\\0' '\\n' 2>/dev/null <"$file" | grep -i authorization: >>"$1/found"
  done
  echo >>"$1/passes"
done
"""


class Origin:
    """Serves a folder to git as plain files, to those who know the token."""

    def __init__(self, folder, before_answer=lambda: None, sends_on_to=None):
        self.folder = folder
        self.before_answer = before_answer
        self.sends_on_to = sends_on_to
        self.requests = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            with connection:
                self.answer(connection)

    def answer(self, connection):
        request = b""
        while b"\r\n\r\n" not in request:
            more = connection.recv(65536)
            if not more:
                return
            request += more
        text = request.decode()
        self.requests.append(text)
        self.before_answer()
        if self.sends_on_to:
            connection.sendall((f"HTTP/1.1 302 Found\r\nLocation: {self.sends_on_to}"
                                f"{text.split(' ')[1]}\r\nContent-Length: 0\r\n"
                                "Connection: close\r\n\r\n").encode())
            return
        path = self.folder + text.split(" ")[1].partition("?")[0].removeprefix("/widgets")
        if f"basic {BASIC}" not in text:
            status, body = "401 Unauthorized", b""
        elif not os.path.isfile(path):
            status, body = "404 Not Found", b""
        else:
            with open(path, "rb") as file:
                status, body = "200 OK", file.read()
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode() + body)

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def git(t, path, *words):
    return subprocess.run(["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C",
                           path, *words], check=True, env=t.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE).stdout.decode().strip()


def commit(t, path, text):
    t.write("widgets/README", text)
    git(t, path, "commit", "-q", "-a", "-m", "next")
    git(t, path, "update-server-info")


def start(t, address, *words, **options):
    return t.sf("start", "--provider", "local", "--session", "s", "--repo",
                address + "/widgets", "--repo-token", "${GIT_TOKEN}", *words, env=HOST,
                **options)


def test_refs(t):
    path = t.repository("widgets")
    git(t, path, "tag", "v1")
    git(t, path, "checkout", "-q", "-b", "feature/x")
    commit(t, path, "feature\n")
    feature = git(t, path, "rev-parse", "HEAD")
    git(t, path, "update-ref", "refs/pull/7/head", "HEAD")
    git(t, path, "checkout", "-q", "main")
    commit(t, path, "second\n")
    git(t, path, "update-server-info")
    origin = Origin(path + "/.git")
    for ref, text in (("", "second"), ("main", "second"), ("v1", "hello"), ("feature/x", "feature"),
                      (feature, "feature"), ("refs/pull/7/head", "feature"),
                      ("heads/feature/x", "feature")):
        start(t, origin.address, *(["--ref", ref] if ref else []))
        shown = t.sf("exec", "s", "--", "cat", "README")
        assert shown.text == text + "\n", (ref, shown)
        where = t.sf("exec", "s", "--", "git", "config", "remote.origin.url")
        assert where.text == origin.address + "/widgets\n", where
        left = t.sf("exec", "s", "--cwd", ".", "--", "ls", "-A", ".mastra-sandbox")
        assert left.text == "setup\n", left
        t.sf("rm", "s")
    missing = start(t, origin.address, "--ref", "nowhere", code=125)
    assert "there is no 'nowhere'" in missing.error_text, missing
    origin.close()


def test_a_credential_does_not_follow_a_redirect(t):
    path = t.repository("widgets")
    git(t, path, "update-server-info")
    other = Origin(path + "/.git")
    origin = Origin(path + "/.git", sends_on_to=other.address)
    refused = start(t, origin.address, code=125)
    assert "sends it to another address" in refused.error_text, refused
    assert origin.requests and other.requests == [], other.requests
    assert TOKEN not in refused.error_text and BASIC not in refused.error_text, refused
    for server in (origin, other):
        server.close()


def test_a_second_try_shows_the_token_to_nobody(t):
    path = t.repository("widgets")
    git(t, path, "update-server-info")
    t.write("scanner", SCANNER)
    notes = t.path("notes")
    os.mkdir(notes)

    def passes():
        return t.read("notes", "passes").count(b"\n") if os.path.exists(notes + "/passes") else 0

    def scanner_runs():
        return os.path.exists(notes + "/pid") and processes.alive(int(t.read("notes", "pid")))

    def wait_for_scanner():
        # It gets its chance: two looks at everything while git waits for the answer.
        seen = passes()
        while scanner_runs() and passes() < seen + 2:
            pass

    origin = Origin(path + "/.git", wait_for_scanner)
    proxy = Origin(path + "/.git")
    setup = f"""
      [ ! -e ../again ] || exit 0
      touch ../again
      git config http.proxy {proxy.address}
      git config --global http.proxy {proxy.address}
      git -C .. init -q
      git -C .. config http.proxy {proxy.address}
      git config core.alternateRefsCommand 'env >>{notes}/found; :'
      setsid sh {t.path("scanner")} {notes} </dev/null >/dev/null 2>&1 &
      while [ ! -e {notes}/passes ]; do sleep 0.01; done
      exit 3"""
    words = ["--env", f"HOME={t.path('home')}", "--setup", setup]
    failed = start(t, origin.address, *words, code=125)
    assert "failed with exit code 3" in failed.error_text, failed
    assert scanner_runs()
    asked = len(origin.requests)
    commit(t, path, "mended\n")
    start(t, origin.address, *words)
    assert len(origin.requests) > asked
    shown = t.sf("exec", "s", "--", "cat", "README")
    assert shown.text == "mended\n", shown
    assert proxy.requests == []
    assert not scanner_runs()
    found = t.read("notes", "found") if os.path.exists(notes + "/found") else b""
    assert BASIC.encode() not in found, found
    for folder, _, names in os.walk(t.root):
        for name in names:
            if not os.path.isfile(os.path.join(folder, name)):
                continue
            with open(os.path.join(folder, name), "rb") as file:
                text = file.read()
                assert TOKEN.encode() not in text and BASIC.encode() not in text, name
    origin.close()
    proxy.close()


main(globals())
