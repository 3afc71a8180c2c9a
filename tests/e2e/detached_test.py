"""Commands that outlive the program: exec --detach, logs, kill."""

import contextlib
import os
import signal

from support import processes
from support.case import wait_until
from support.main import main

# Writes its first lines, and goes on when the file go is there.
WAITS = "echo one; echo two >&2; while [ ! -e go ]; do sleep 0.05; done; echo three; exit 7"


def detach(t, session, text):
    return t.sf("exec", session, "--detach", "--shell", text).text.strip()


def process(t, session, name):
    return next((p for p in t.sf("ps", session, "--json").json if p["id"] == name), None)


def written(t, session, name, out):
    wait_until(lambda: t.sf("logs", session, name).out == out, "its output is kept")


def test_a_command_runs_on_and_is_read_by_a_later_call(t):
    session = t.session()
    name = detach(t, session, WAITS)
    assert process(t, session, name)["running"] and process(t, session, name)["detached"]
    written(t, session, name, b"one\n")
    first = t.sf("logs", session, name)
    assert (first.out, first.err) == (b"one\n", b"two\n"), first
    # A look takes nothing away, and from a cursor on there is only what comes later.
    look = t.sf("logs", session, name, "--json").json
    assert (look["stdout"], look["stderr"], look["running"]) == ("one\n", "two\n", True), look
    assert look["next"] == {"out": 4, "err": 4}, look
    assert t.sf("logs", session, name, "--from", "4:4").out == b""
    assert t.sf("logs", session, name, "--from", "2").out == b"e\n"

    follower = t.spawn("logs", session, name, "--follow", "--from", "4:4")
    t.sf("exec", session, "--", "touch", "go")
    followed = t.finish(follower, 0)
    assert (followed.out, followed.err) == (b"three\n", b""), followed


def test_the_end_is_listed_and_all_of_it_read(t):
    session = t.session()
    name = detach(t, session, "echo out; exit 7")
    wait_until(lambda: not process(t, session, name)["running"], "it has ended")
    assert process(t, session, name)["exitCode"] == 7
    ended = t.sf("logs", session, name, "--json").json
    assert (ended["stdout"], ended["running"], ended["exitCode"]) == ("out\n", False, 7), ended


def test_an_interrupt_of_a_look_leaves_the_command_alone(t):
    session = t.session()
    name = detach(t, session, WAITS)
    follower = t.spawn("logs", session, name, "--follow")
    assert follower.stdout.readline() == b"one\n"
    follower.send_signal(signal.SIGINT)
    t.finish(follower, 130)
    assert process(t, session, name)["running"]


def test_a_look_that_loses_its_connection_says_so(t):
    session = t.session()
    name = detach(t, session, WAITS)
    follower = t.spawn("logs", session, name, "--follow")
    assert follower.stdout.readline() == b"one\n"
    for pid, line in processes.below(t.dir).items():
        if "sandforge-guest" in line:
            os.kill(pid, signal.SIGKILL)
    lost = t.finish(follower, 125)
    assert lost.error_text.startswith("two\nsandforge: "), lost
    for pid in processes.below(t.dir):
        with contextlib.suppress(ProcessLookupError):  # its sleeps end by themselves
            os.kill(pid, signal.SIGKILL)


def test_kill_ends_the_tree_and_a_signal_is_only_sent(t):
    session = t.session()
    name = detach(t, session, "trap 'echo got it' USR1; sleep 11229 & echo ready; "
                              "while :; do sleep 0.05; done")
    written(t, session, name, b"ready\n")
    # The child of its shell does not know the signal, and ends.
    t.sf("kill", session, name, "--signal", "SIGUSR1")
    wait_until(lambda: b"got it" in t.sf("logs", session, name).out, "the signal arrived")
    assert process(t, session, name)["running"]
    assert t.sf("kill", session, name, "--json").json == {"session": session, "process": name}
    wait_until(lambda: not [line for line in processes.below(t.dir).values() if "11229" in line],
               "the whole tree is gone")


def test_what_has_ended_is_not_called_unknown(t):
    session = t.session()
    name = detach(t, session, "exit 3")
    wait_until(lambda: not process(t, session, name)["running"], "it has ended")
    for words in ([], ["--signal", "TERM"]):
        said = t.sf("kill", session, name, *words, code=125)
        assert said.error_text == (f"sandforge: the process {name} of the session {session} has "
                                   "ended already\n"), said


def test_what_a_command_left_running_is_killed_too(t):
    session = t.session()
    name = detach(t, session, "sleep 11337 >/dev/null 2>&1 & exit 3")
    wait_until(lambda: not process(t, session, name)["running"], "its shell has ended")
    left = lambda: [line for line in processes.below(t.dir).values() if "11337" in line]
    assert process(t, session, name)["stray"] and left()
    said = t.sf("kill", session, name, "--signal", "USR1", code=125)
    assert said.error_text == (
        f"sandforge: the process {name} of the session {session} has ended: what it left running "
        "is ended by kill without --signal\n"), said
    assert left()
    t.sf("kill", session, name)
    wait_until(lambda: not left(), "what it left is gone")
    wait_until(lambda: "stray" not in process(t, session, name), "that is known")
    said = t.sf("kill", session, name, code=125)
    assert said.error_text == (
        f"sandforge: the process {name} of the session {session} has ended already\n"), said


def test_what_is_not_there_and_what_makes_no_sense(t):
    session = t.session()
    for verb in ("logs", "kill"):
        said = t.sf(verb, session, "77", code=125)
        assert said.error_text == (
            f"sandforge: the session {session} has no process 77: its processes are listed by "
            f"sandforge ps {session}\n"), said
    t.sf("stop", session)
    t.sf("logs", session, "1", code=125)
    assert t.no_guest(), "a look has started the machine"
    for words in (["exec", session, "--detach", "-i", "--", "true"],
                  ["exec", session, "--detach", "--tty", "--", "true"],
                  ["logs", session, "1", "--from", "4:"], ["logs", session, "1", "--from", "-1"],
                  ["kill", session, "1", "--signal", "NOPE"], ["kill", session, "1", "-s", "0"],
                  ["logs", session, "1", "--follow", "--json"],
                  ["logs", session], ["kill", session]):
        t.sf(*words, code=2)


main(globals())
