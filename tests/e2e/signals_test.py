"""Interrupts, broken pipes and slow readers: the command's whole tree ends, and nothing is lost."""

import os
import re
import signal
import subprocess
import time

from support import processes, pty
from support.case import SANITIZED, wait_until
from support.main import main

# Prints its pid; its children are one in the same group, one in a session of its own, and one whose
# parent is gone.
TREE = """
sleep 11223 & setsid sleep 11224 & (setsid sleep 11225 &)
echo ready
sleep 11226
"""


def sleepers(t):
    return [line for line in processes.below(t.dir).values() if line.startswith("sleep 1122")]


def all_words(t):
    """One way to run a command in each kind of session."""
    return {"run": ["run", "--provider", "local"], "exec": ["exec", t.session()]}


def interrupted(t, words, number, code):
    child = t.spawn(*words, "--", "sh", "-c", TREE)
    assert child.stdout.readline() == b"ready\n"
    wait_until(lambda: len(sleepers(t)) == 4, "the tree runs")
    child.send_signal(number)
    ended = t.finish(child, code)
    assert ended.out == b"" and ended.err == b"", ended
    assert sleepers(t) == [], "the whole tree ended before the program did"


def test_sigint_ends_the_whole_tree(t):
    for words in all_words(t).values():
        interrupted(t, words, signal.SIGINT, 130)
    (session,) = t.sessions()
    assert t.sf("exec", session, "--", "echo", "hi").text == "hi\n"


def test_sigterm_ends_the_whole_tree(t):
    for words in all_words(t).values():
        interrupted(t, words, signal.SIGTERM, 143)


def test_sighup_ends_the_whole_tree(t):
    for words in all_words(t).values():
        interrupted(t, words, signal.SIGHUP, 129)


def test_sigquit_ends_the_whole_tree(t):
    for words in all_words(t).values():
        interrupted(t, words, signal.SIGQUIT, 131)
    # That of run is gone: nobody would remove it later.
    assert len(t.sessions()) == 1, t.sessions()


def test_a_command_that_another_call_ends_says_so(t):
    for verb, words in (("stop", "(has stopped|stops or removes)"),
                        ("rm", "(has removed|stops or removes)")):
        t.sf("start", "--provider", "local", "--session", "s")
        child = t.spawn("exec", "s", "--", "sh", "-c", "echo ready; exec sleep 11226")
        assert child.stdout.readline() == b"ready\n"
        t.sf(verb, "s")
        ended = t.finish(child, 143)
        assert re.fullmatch(f"sandforge: the command was ended: another call {words} the session\n",
                            ended.error_text), ended
    # One that ends itself says nothing.
    session = t.session()
    assert t.sf("exec", session, "--", "sh", "-c", "kill -TERM $$", code=143).err == b""


def test_a_host_that_was_stopped_does_not_take_its_guest_for_silent(t):
    t.write("c.yaml", "sandbox: {provider: local, options: {guestSilenceMs: 800}}\n")
    ticking = "echo ready; while [ ! -e end ]; do echo t >> ticks; sleep 0.1; done; echo done"
    child = t.spawn("--config", "c.yaml", "run", "--keep", "--session", "s", "--", "sh", "-c",
                    ticking)
    assert child.stdout.readline() == b"ready\n"
    lines = processes.below(t.dir)
    guests = [pid for pid, line in lines.items() if "sandforge-guest" in line]
    hosts = [child.pid] + [pid for pid, line in lines.items() if "sandforge-runner" in line]
    assert len(guests) == 1, lines

    def ticks():
        return len(t.read("root", "s", "ticks")) // 2

    for _ in range(2):
        for pid in hosts:
            os.kill(pid, signal.SIGSTOP)
        before = ticks()
        # Three times as long as a guest may be silent.
        wait_until(lambda: ticks() >= before + 24, "the command goes on without its host")
        for pid in hosts:
            os.kill(pid, signal.SIGCONT)
        # As long again with both: whoever counts wrong has ended it by then.
        before = ticks()
        wait_until(lambda: ticks() >= before + 24, "the guest lives on")
    t.write("root/s/end", "")
    ended = t.finish(child, 0)
    assert (ended.out, ended.err) == (b"done\n", b"sandforge: session s\n"), ended
    left = [pid for pid, line in processes.below(t.dir).items() if "sandforge-guest" in line]
    assert left == guests, "the session has the guest that it had"


def test_an_interrupt_of_json_answers_in_json(t):
    session = t.session()
    child = t.spawn("exec", "--json", session, "--", "sh", "-c",
                    f"echo partial; touch {t.path('up')}; sleep 11226")
    wait_until(lambda: os.path.exists(t.path("up")), "the command runs")
    child.send_signal(signal.SIGINT)
    ended = t.finish(child, 130)
    assert ended.json["result"]["outcome"] == "cancelled", ended
    assert ended.json["result"]["stdout"] == "partial\n", ended


def test_what_a_command_says_about_its_end_is_shown(t):
    for words in all_words(t).values():
        child = t.spawn(*words, "--", "sh", "-c",
                        "trap 'echo cleaning; echo up >&2; exit 3' TERM; echo ready; "
                        "while :; do sleep 0.05; done")
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGINT)
        ended = t.finish(child, 130)
        assert ended.out == b"cleaning\n" and ended.err.endswith(b"up\n"), ended


def test_a_second_interrupt_ends_the_program_at_once(t):
    session = t.session()
    # It ignores what the first interrupt sends; the grace that it gets is what we cut short.
    child = t.spawn("exec", session, "--", "sh", "-c",
                    "trap 'echo asked' TERM INT HUP; echo ready; while :; do sleep 0.1; done")
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == b"asked\n"
    child.send_signal(signal.SIGINT)
    assert t.finish(child).code == 130
    assert t.sf("exec", session, "--", "echo", "hi").text == "hi\n"
    t.sf("rm", session)


def test_an_interrupt_during_set_up(t):
    child = t.spawn("run", "--provider", "local", "--setup", f"touch {t.path('up')}; sleep 11226",
                    "--repo", t.repository(), "--", "touch", t.path("ran"))
    wait_until(lambda: os.path.exists(t.path("up")), "the set-up runs")
    child.send_signal(signal.SIGINT)
    t.finish(child, 130)
    assert not os.path.exists(t.path("ran"))
    assert sleepers(t) == [] and t.sessions() == [] and t.no_guest()

    os.unlink(t.path("up"))
    child = t.spawn("start", "--provider", "local", "--session", "s", "--setup",
                    f"touch {t.path('up')}; sleep 11226", "--repo", t.path("origin"))
    wait_until(lambda: os.path.exists(t.path("up")), "the set-up runs")
    child.send_signal(signal.SIGTERM)
    ended = t.finish(child, 143)
    assert ended.out == b"" and ended.error_text.endswith(
        "sandforge: session s was kept; remove it with: sandforge rm s\n"), ended
    assert sleepers(t) == [] and t.sessions() == ["s"]


def test_an_interrupt_while_another_process_starts_the_session(t):
    first = t.spawn("start", "--provider", "local", "--session", "s", "--repo", t.repository(),
                    "--setup", f"touch {t.path('up')}; while ! test -e {t.path('go')}; do "
                    "sleep 0.05; done")
    wait_until(lambda: os.path.exists(t.path("up")), "the set-up runs")
    for words in (["exec", "s"], ["run", "--session", "s"]):
        child = t.spawn("--log-level", "debug", *words, "--", "touch", t.path("ran"))
        # Nothing tells that it waits but that it has the database open and does nothing.
        wait_until(lambda: processes.has_open(child.pid, t.state + "/sessions.db") and
                   processes.state(child.pid) == "S", "the second process waits")
        child.send_signal(signal.SIGINT)
        ended = t.finish(child, 130)
        assert "the start was cancelled" in ended.error_text, ended
    assert first.poll() is None
    t.write("go", "")
    assert t.finish(first, 0).text == "s\n"
    assert not os.path.exists(t.path("ran"))


def test_ctrl_c_at_a_terminal(t):
    session = t.session()
    ours, theirs = pty.pair()
    child = t.spawn("exec", session, "--", "sh", "-c", TREE, stdin=theirs, stdout=theirs,
                    stderr=theirs, through=["setsid", "--ctty", "--wait"])
    os.close(theirs)
    assert pty.read_until(ours, b"ready") == b"ready"
    os.write(ours, b"\x03")
    assert t.finish(child).code == 130
    assert sleepers(t) == []
    os.close(ours)


def test_a_command_with_a_terminal_gets_ctrl_c_itself(t):
    session = t.session()
    ours, theirs = pty.pair()
    child = t.spawn("exec", "-t", session, "--", "sh", "-c",
                    "trap 'echo caught; exit 7' INT; test -t 0 && test -t 1 && echo ready; "
                    "while :; do sleep 0.1; done", stdin=theirs, stdout=theirs, stderr=theirs,
                    through=["setsid", "--ctty", "--wait"])
    os.close(theirs)
    pty.read_until(ours, b"ready")
    os.write(ours, b"\x03")
    pty.read_until(ours, b"caught")
    assert t.finish(child).code == 7
    os.close(ours)


def test_ignored_signals_stay_ignored(t):
    session = t.session()
    child = t.spawn("exec", session, "--", "sh", "-c",
                    f"echo ready; while ! test -e {t.path('go')}; do sleep 0.05; done; echo end",
                    through=["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"])
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGHUP)
    t.write("go", "")
    assert child.stdout.read() == b"end\n"
    assert child.wait(60) == 0


def test_the_program_killed_in_a_command(t):
    session = t.session()
    child = t.spawn("exec", session, "--", "sh", "-c", "echo ready; sleep 11226")
    assert child.stdout.readline() == b"ready\n"
    child.kill()
    child.wait()
    assert t.sf("exec", session, "--", "echo", "hi").text == "hi\n"
    assert t.sessions() == [session]
    t.sf("rm", session)
    assert t.no_guest() and sleepers(t) == []


def test_the_program_killed_at_any_moment_of_a_start(t):
    repo = t.repository()
    for number in range(12):
        child = t.spawn("start", "--provider", "local", "--session", f"s{number}", "--repo", repo,
                        "--setup", "true")
        # Not a proof of anything: it spreads the kills over what a start does.
        time.sleep(number * 0.01)
        child.kill()
        child.communicate()
    for session in t.sessions():
        ran = t.sf("exec", session, "--", "cat", "README")
        assert ran.text == "hello\n", ran
    for number in range(12):
        t.sf("rm", "-f", f"s{number}")
    assert t.sessions() == [] and t.no_guest()


def test_the_guest_killed_from_outside(t):
    session = t.session()
    t.sf("exec", session, "--", "sh", "-c", "echo hi > note; setsid sleep 11225 & sleep 11223 &")
    wait_until(lambda: len(sleepers(t)) == 2, "the children run")
    (guest,) = [pid for pid, line in processes.below(t.dir).items() if "sandforge-guest" in line]
    os.kill(guest, signal.SIGKILL)
    wait_until(lambda: not processes.alive(guest), "the guest is dead")
    # Merely stopped: it is started again, and what the old one left behind is no part of it.
    assert t.sf("exec", session, "--", "cat", "note").text == "hi\n"
    assert t.sf("rm", session).text == session + "\n"
    assert sleepers(t) == []


def test_a_reader_that_goes_away_is_quiet(t):
    for words in all_words(t).values():
        child = t.spawn(*words, "--", "sh", "-c", "yes & setsid sleep 11225 & yes")
        assert child.stdout.read(2) == b"y\n"
        child.stdout.close()
        child.stdout = None
        ended = t.finish(child, 141)
        assert ended.err == b"", ended
        assert sleepers(t) == []
        assert not [line for line in processes.below(t.dir).values() if line == "yes"]


def test_yes_into_head(t):
    session = t.session()
    through = subprocess.run(
        ["sh", "-c", 'for w in "run --provider local" "exec $2"; do "$1" $w -- yes | head -1; done',
         "sh", t.program, session], env=t.env, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=120)
    assert through.stdout == b"y\ny\n" and through.stderr == b"", through
    assert not [line for line in processes.below(t.dir).values() if line == "yes"]


def test_lists_and_help_into_a_closed_pipe_are_quiet(t):
    t.session()
    for words in (["--help"], ["run", "--help"], ["ps"], ["ps", "--json"], ["providers"],
                  ["providers", "--json"], ["describe", "local"], ["plugins", "doctor"],
                  ["settings", "effective", "local", "--json"]):
        reading, writing = os.pipe()
        os.close(reading)
        child = t.spawn(*words, stdout=writing)
        os.close(writing)
        ended = t.finish(child)
        # Help is written before anything else is done: the signal itself ends it.
        assert ended.code in ((-signal.SIGPIPE,) if "--help" in words else (141,)), (words, ended)
        assert ended.err == b"", (words, ended)


def test_a_full_device_is_an_error(t):
    session = t.session()
    with open("/dev/full", "wb") as full:
        for words in (["exec", session], ["run", "--provider", "local"]):
            ended = t.finish(t.spawn(*words, "--", "yes", stdout=full), 125)
            assert ended.error_text == ("sandforge: the output cannot be written: "
                                        "No space left on device\n"), ended
        for words in (["ps"], ["--help"], ["providers", "--json"]):
            ended = t.finish(t.spawn(*words, stdout=full), 125)
            assert ended.error_text == ("sandforge: the output cannot be written: "
                                        "No space left on device\n"), (words, ended)


def test_a_session_whose_name_nobody_could_read_is_named(t):
    with open("/dev/full", "wb") as full:
        ended = t.finish(t.spawn("start", "--provider", "local", stdout=full), 125)
    (session,) = t.sessions()
    assert ended.error_text.endswith(f"sandforge: session {session} was kept; remove it with: "
                                     f"sandforge rm {session}\n"), ended


def stuck(t, *words, mark, both=False):
    """Runs the words, which write for ever, into a pipe that stays open and that nobody reads."""
    reading, writing = os.pipe()
    child = t.spawn(*words, "--", "sh", "-c", f"yes {mark}", stdout=writing,
                    stderr=writing if both else subprocess.PIPE)
    os.close(writing)

    def held_back():
        lines = [pid for pid, line in processes.below(t.dir).items() if line == f"yes {mark}"]
        return lines and processes.state(lines[0]) == "S" and processes.blocked_in_write(lines[0])
    wait_until(held_back, "the command waits for its reader")
    return child, reading


def test_an_interrupt_while_nobody_reads(t):
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)):
        for words in all_words(t).values():
            child, reading = stuck(t, *words, mark="stuck")
            child.send_signal(number)
            ended = t.finish(child, code)
            assert ended.error_text == "sandforge: output that nobody read was dropped\n", ended
            os.close(reading)
        (session,) = t.sessions()  # that of exec: run has removed its own
        t.sf("rm", session)
    assert t.no_guest()


def test_an_interrupt_while_nobody_reads_errors_either(t):
    child, reading = stuck(t, "run", "--provider", "local", mark="stuck", both=True)
    child.send_signal(signal.SIGTERM)
    t.finish(child, 143)
    os.close(reading)
    assert t.sessions() == [] and t.no_guest()


def test_a_timeout_while_nobody_reads(t):
    child, reading = stuck(t, "run", "--provider", "local", "--timeout", "1s", mark="stuck")
    ended = t.finish(child, 124)
    assert ended.error_text == ("sandforge: output that nobody read was dropped\n"
                                "sandforge: the command took too long and was ended\n"), ended
    os.close(reading)
    assert t.sessions() == [] and t.no_guest()


def test_an_interrupt_while_nobody_reads_at_a_terminal(t):
    session = t.session()
    ours, theirs = pty.pair()
    child = t.spawn("exec", session, "--", "yes", stdout=theirs)
    os.close(theirs)
    wait_until(lambda: [pid for pid, line in processes.below(t.dir).items()
                        if line == "yes" and processes.state(pid) == "S" and
                        processes.blocked_in_write(pid)], "the command waits for its reader")
    child.send_signal(signal.SIGTERM)
    t.finish(child, 143)
    os.close(ours)


def test_an_interrupt_of_a_list_that_nobody_reads(t):
    t.session()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writing, True)
    child = t.spawn("ps", stdout=writing)
    os.close(writing)
    wait_until(lambda: processes.has_open(child.pid, t.state + "/sessions.db") and
               processes.state(child.pid) == "S", "the list waits for its reader")
    child.send_signal(signal.SIGTERM)
    t.finish(child, 143)
    os.close(reading)


def test_an_interrupt_drops_nothing_that_is_read(t):
    # More than fits into the pipe, by a command that the interrupt does not end at once.
    child = t.spawn("exec", t.session(), "--", "sh", "-c",
                    "trap 'head -c 200000 /dev/zero; exit' TERM; echo ready; "
                    "while :; do sleep 0.05; done")
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGTERM)
    time.sleep(0.5)  # a reader that is late is not one that is gone
    ended = t.finish(child, 143)
    assert len(ended.out) == 200000 and b"dropped" not in ended.err, (len(ended.out), ended.err)


def test_the_flags_of_a_shared_output_stay(t):
    session = t.session()
    reading, writing = os.pipe()
    child = t.spawn("exec", session, "--", "sh", "-c",
                    f"echo hi; while ! test -e {t.path('go')}; do sleep 0.05; done", stdout=writing)
    assert os.read(reading, 3) == b"hi\n"
    assert os.get_blocking(writing)
    t.write("go", "")
    t.finish(child, 0)
    os.close(writing)
    os.close(reading)


def test_a_second_interrupt_says_which_session_stays(t):
    child = t.spawn("run", "--provider", "local", "--", "sh", "-c",
                    "trap 'echo asked' TERM INT HUP; echo ready; while :; do sleep 0.1; done")
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == b"asked\n"
    child.send_signal(signal.SIGINT)
    ended = t.finish(child, 130)
    (session,) = t.sessions()
    assert ended.error_text.endswith(f"sandforge: session {session} stays; "
                                     f"remove it with: sandforge rm {session}\n"), ended
    t.sf("rm", session)


def test_a_slow_reader_holds_the_command_back(t):
    session = t.session()
    size = 64 << 20
    count = t.path("written")
    # The command says how far it came, beside its output.
    child = t.spawn("exec", session, "--", "sh", "-c",
                    f"head -c {size} /dev/zero; echo all > {count}")
    child.stdout.read(1)
    peak = []

    def stalled():
        # Nobody reads: the writer must come to rest with most of its output still to come.
        seen = [processes.peak_memory_kib(child.pid)]
        peak.extend(seen)
        lines = [pid for pid, line in processes.below(t.dir).items() if line.startswith("head -c")]
        return lines and processes.state(lines[0]) == "S" and processes.blocked_in_write(lines[0])
    wait_until(stalled, "the command waits for its reader")
    assert not os.path.exists(count)
    total = 1
    while True:
        piece = child.stdout.read(1 << 16)
        if not piece:
            break
        total += len(piece)
        peak.append(processes.peak_memory_kib(child.pid) or 0)
    assert total == size
    assert child.wait(60) == 0
    if not SANITIZED:
        assert max(peak) < 48 << 10, f"{max(peak)} KiB"


main(globals())
