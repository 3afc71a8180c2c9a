"""Many processes of the program on one session."""

import os

from support import processes
from support.case import wait_until
from support.main import main


def guests(t):
    return [pid for pid, line in processes.below(t.dir).items() if "sandforge-guest" in line]


def test_twenty_commands_at_once_on_a_stopped_session(t):
    session = t.session()
    t.sf("stop", session)
    children = [t.spawn("exec", session, "--", "sh", "-c", f"echo {n} >> all; echo {n}")
                for n in range(20)]
    for number, child in enumerate(children):
        ran = t.finish(child, 0)
        assert ran.text == f"{number}\n" and ran.err == b"", ran
    assert len(guests(t)) == 1, guests(t)
    lines = t.read("root", session, "all").decode().split()
    assert sorted(map(int, lines)) == list(range(20)), lines


def test_twenty_commands_at_once_on_a_session_that_was_never_set_up(t):
    repo = t.repository()
    t.sf("start", "--provider", "local", "--session", "s", "--repo", repo, "--setup",
         f"test -e {t.path('go')} && echo ran >> ../ran", code=125)
    t.write("go", "")
    children = [t.spawn("exec", "s", "--", "cat", "../ran") for _ in range(20)]
    for child in children:
        assert t.finish(child, 0).text == "ran\n"
    assert len(guests(t)) == 1


def test_two_starts_of_one_session_at_once(t):
    repo = t.repository()
    children = [t.spawn("start", "--provider", "local", "--session", "x", "--repo", repo, "--setup",
                        "echo ran >> ../ran") for _ in range(8)]
    for child in children:
        started = t.finish(child, 0)
        assert started.text == "x\n" and started.err == b"", started
    assert t.sessions() == ["x"] and len(guests(t)) == 1
    assert t.sf("exec", "x", "--", "cat", "../ran").text == "ran\n"


def test_runs_at_once_have_sessions_of_their_own(t):
    children = [t.spawn("run", "--provider", "local", "--", "sh", "-c", f"echo {n} > f; cat f")
                for n in range(8)]
    for number, child in enumerate(children):
        assert t.finish(child, 0).text == f"{number}\n"
    assert t.sessions() == [] and t.no_guest()
    assert len(os.listdir(t.root)) == 8


def test_rm_while_a_command_runs(t):
    session = t.session()
    child = t.spawn("exec", session, "--", "sh", "-c", "echo ready; sleep 11226")
    assert child.stdout.readline() == b"ready\n"
    assert t.sf("rm", session).text == session + "\n"
    ended = t.finish(child)
    # It is told that the session went away, and claims no exit code of the command.
    assert ended.code in (125, 128 + 9, 128 + 15), ended
    assert t.sessions() == [] and t.no_guest()
    assert not [line for line in processes.below(t.dir).values() if "11226" in line]
    t.sf("exec", session, "--", "true", code=125)


def test_stop_while_a_command_runs(t):
    session = t.session()
    child = t.spawn("exec", session, "--", "sh", "-c", "echo ready; sleep 11226")
    assert child.stdout.readline() == b"ready\n"
    assert t.sf("stop", session).text == session + "\n"
    assert t.finish(child).code in (125, 128 + 9, 128 + 15)
    assert t.no_guest()
    assert t.sf("exec", session, "--", "echo", "hi").text == "hi\n"


def test_rm_at_once_from_many(t):
    session = t.session()
    children = [t.spawn("rm", session) for _ in range(6)]
    codes = [t.finish(child) for child in children]
    for ended in codes:
        unknown = f"sandforge: there is no session '{session}'\n"
        assert ended.code == 0 or ended.error_text == unknown, ended
    assert 0 in [ended.code for ended in codes]
    assert t.sessions() == [] and t.no_guest()


def test_start_and_rm_at_once(t):
    for number in range(5):
        name = f"s{number}"
        children = [t.spawn("start", "--provider", "local", "--session", name),
                    t.spawn("rm", "-f", name), t.spawn("exec", name, "--", "echo", "hi")]
        results = [t.finish(child) for child in children]
        for ended in results:
            assert ended.code in (0, 125), ended
            assert ended.code == 0 or ended.error_text.startswith("sandforge: "), ended
        t.sf("rm", "-f", name)
    assert t.sessions() == []
    wait_until(lambda: t.no_guest(), "no guest is left behind")


main(globals())
