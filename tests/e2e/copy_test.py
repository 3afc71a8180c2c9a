"""cp: files between this machine and a session."""

import fcntl
import os
import signal
import stat
import subprocess
import termios

from support.case import wait_until
from support.main import main


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def folder_of(t, session):
    return t.path("root", session)


def test_one_file_each_way(t):
    session = t.session()
    t.write("script", "#!/bin/sh\necho hello\n", 0o750)
    up = t.sf("cp", t.path("script"), session + ":work", "--json").json
    assert up == {"session": session, "files": 1, "bytes": 21, "skipped": []}, up
    assert t.sf("exec", session, "--", "./work").text == "hello\n"
    assert mode(os.path.join(folder_of(t, session), "work")) == 0o750
    # Into a directory, under its own name.
    t.sf("exec", session, "--", "mkdir", "-p", "dir")
    shown = t.sf("cp", t.path("script"), session + ":dir")
    assert (shown.out, shown.err) == (b"", b""), shown
    os.mkdir(t.path("got"))
    t.sf("cp", session + ":dir/script", t.path("got"))
    t.sf("cp", session + ":dir/script", t.path("other name"))
    for path in ("got/script", "other name"):
        assert t.read(path) == b"#!/bin/sh\necho hello\n" and mode(t.path(path)) == 0o750, path
    # The session's own absolute paths, too.
    t.sf("cp", f"{session}:{folder_of(t, session)}/dir/script", t.path("absolute"))
    assert t.read("absolute") == t.read("script")


def test_standard_input_and_output(t):
    session = t.session()
    data = bytes(range(256)) * 10000
    t.sf("cp", "-", session + ":bytes", input=data)
    assert t.sf("cp", session + ":bytes", "-").out == data
    assert t.sf("cp", session + ":bytes", "-", "--json").out == data
    t.sf("exec", session, "--", "mkdir", "dir")
    for to, said in (("", "."), ("dir", "dir"), ("dir/", "dir/")):
        refused = t.sf("cp", "-", f"{session}:{to}", input=b"x", code=125)
        file = said.rstrip("/") + "/NAME"
        assert refused.error_text == (
            f"sandforge: standard input has no name, and {said} is a directory: name the file, as "
            f"in {session}:{file}\n"), refused
    assert t.sf("exec", session, "--", "ls", "dir").out == b""
    with subprocess.Popen(["head", "-c", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as head:
        t.sf("exec", session, "--", "truncate", "-s", "100M", "hole")
        t.sf("cp", session + ":hole", "-", stdout=head.stdin, code=141)


def test_trees(t):
    session = t.session()
    t.write("tree/a/file", "1", 0o640)
    t.write("tree/it's a \"name\"\n", "2", 0o600)
    os.mkdir(t.path("tree/empty"))
    os.symlink("/etc/passwd", t.path("tree/link"))
    refused = t.sf("cp", t.path("tree"), session + ":copy", code=125)
    assert "copy it with -r" in refused.error_text, refused
    shown = t.sf("cp", "-r", t.path("tree"), session + ":copy")
    assert "tree/link" in shown.error_text and shown.out == b"", shown
    found = t.sf("exec", session, "--", "sh", "-c", "cd copy && find . -mindepth 1 -print0 | sort -z").out
    assert found == b"./a\0./a/file\0./empty\0./it's a \"name\"\n\0", found
    again = t.sf("cp", "-r", session + ":copy", t.path("back"), "--json").json
    assert again["files"] == 2, again
    assert t.read("back", "a", "file") == b"1" and mode(t.path("back/a/file")) == 0o640
    assert t.read("back", "it's a \"name\"\n") == b"2"
    assert sorted(os.listdir(t.path("back"))) == sorted(["a", "empty", "it's a \"name\"\n"])
    # Once more it goes inside; with a dot at its end its contents do.
    t.sf("cp", "-r", session + ":copy", t.path("back"))
    assert t.read("back", "copy", "a", "file") == b"1"
    os.mkdir(t.path("flat"))
    t.sf("cp", "-r", session + ":copy/.", t.path("flat"))
    assert t.read("flat", "a", "file") == b"1"


def test_a_source_that_is_no_file_is_skipped_and_told(t):
    session = t.session()
    os.mkfifo(t.path("pipe"))
    shown = t.sf("cp", t.path("pipe"), session + ":x", code=1)
    assert shown.out == b"" and "pipe" in shown.error_text, shown
    told = t.sf("cp", t.path("pipe"), session + ":x", "--json", code=1).json
    assert told == {"session": session, "files": 0, "bytes": 0, "skipped": [t.path("pipe")]}, told
    assert not os.path.exists(os.path.join(folder_of(t, session), "x"))
    # Among others it is no reason to fail.
    t.write("tree/file", "1")
    os.mkfifo(t.path("tree/pipe"))
    told = t.sf("cp", "-r", t.path("tree"), session + ":tree", "--json").json
    assert (told["files"], told["skipped"]) == (1, [t.path("tree/pipe")]), told


def test_a_link_that_is_named_is_followed_and_a_pipe_is_skipped(t):
    session = t.session()
    t.sf("exec", session, "--", "sh", "-c",
         "echo x > file && chmod 700 file && ln -s file link && mkfifo pipe && ln -s none nothing")
    t.sf("cp", session + ":link", t.path("got"))
    assert t.read("got") == b"x\n" and not os.path.islink(t.path("got"))
    assert mode(t.path("got")) == 0o644
    skipped = t.sf("cp", session + ":pipe", t.path("p"), code=1)
    assert skipped.out == b"" and skipped.error_text == (
        "sandforge: warning: not copied, it is neither a file nor a directory: pipe\n"), skipped
    told = t.sf("cp", session + ":pipe", t.path("p"), "--json", code=1).json
    assert told == {"session": session, "files": 0, "bytes": 0, "skipped": ["pipe"]}, told
    t.sf("cp", session + ":nothing", t.path("p"), code=125)
    assert not os.path.lexists(t.path("p"))


def test_nothing_is_written_out_of_the_destination(t):
    session = t.session()
    t.sf("exec", session, "--", "sh", "-c",
         "mkdir -p tree/dir && echo evil >tree/dir/file && ln -s /etc/passwd tree/link && "
         "chmod 4755 tree/dir/file")
    os.makedirs(t.path("outside"))
    os.makedirs(t.path("target"))
    os.symlink("../outside", t.path("target/dir"))
    refused = t.sf("cp", "-r", session + ":tree/.", t.path("target"), code=125)
    assert "target/dir" in refused.error_text, refused
    assert os.listdir(t.path("outside")) == []
    os.unlink(t.path("target/dir"))
    os.mkdir(t.path("target/dir"))
    os.symlink("../../outside/new", t.path("target/dir/file"))
    t.sf("cp", "-r", session + ":tree/.", t.path("target"))
    assert os.listdir(t.path("outside")) == []
    # The link was replaced, and the rights that a file lends are not taken over.
    assert mode(t.path("target/dir/file")) == 0o755 and not os.path.islink(t.path("target/dir/file"))
    assert not os.path.lexists(t.path("target/link"))


def test_failures_say_why_and_leave_nothing(t):
    session = t.session()
    t.write("file", "old")
    for words, why in (
            ((session + ":none", t.path("file")), "none"),
            ((t.path("none"), session + ":x"), "none"),
            ((t.path("file"), session + ":no/such/folder"), "no/such/folder"),
            ((t.path("file"), session + ":../../outside"), "outside"),
            ((session + ":/etc/passwd", t.path("x")), "/etc/passwd")):
        failed = t.sf("cp", *words, code=125)
        assert failed.out == b"" and why in failed.error_text, (words, failed)
    assert t.read("file") == b"old"
    answer = t.sf("cp", "--json", session + ":none", t.path("x"), code=125).json
    assert answer["error"]["code"] == "NOT_FOUND", answer
    assert not os.path.exists(t.path("x"))


def test_an_interrupt_leaves_the_old_file(t):
    session = t.session()
    t.sf("cp", "-", session + ":file", input=b"old")
    read, write = os.pipe()
    child = t.spawn("cp", "-", session + ":file", stdin=read)
    os.close(read)
    os.write(write, b"new")
    # It reads once the pipe is empty.
    left = bytearray(4)
    wait_until(lambda: fcntl.ioctl(write, termios.FIONREAD, left) == 0 and not any(left),
               "the copy takes its input")
    child.send_signal(signal.SIGINT)
    t.finish(child, code=130)
    os.close(write)
    assert t.sf("cp", session + ":file", "-").out == b"old"
    assert os.listdir(folder_of(t, session)) == ["file"]


main(globals())
