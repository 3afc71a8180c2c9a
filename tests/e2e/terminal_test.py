"""What people see: colour on a terminal only, and nothing that a terminal obeys by accident."""

import os
import signal
import subprocess

from support import pty
from support.main import main

EVIL = "\x1b]0;pwned\x07\x1b[2J\r\u009b31m\u202e\x7f"


def on_terminal(t, *words, env=None, code=0):
    """What appears on a terminal that is all three streams."""
    ours, theirs = pty.pair()
    child = t.spawn(*words, stdin=theirs, stdout=theirs, stderr=theirs,
                    env={"TERM": "xterm", **(env or {})})
    os.close(theirs)
    shown = pty.read_all(ours)
    assert t.finish(child).code == code, shown
    os.close(ours)
    return shown.replace(b"\r\n", b"\n").decode()


def test_no_escapes_but_on_a_terminal(t):
    for words in (["ps"], ["providers"], ["exec", "nobody", "--", "true"], ["describe", "local"],
                  ["plugins", "doctor"], ["--help"]):
        shown = t.sf(*words, code=None, env={"TERM": "xterm"})
        assert b"\x1b" not in shown.out + shown.err, shown


def test_colour_on_a_terminal(t):
    assert on_terminal(t, "ps").startswith("\x1b[1mSESSION")
    assert on_terminal(t, "exec", "nobody", "--", "true", code=125) == \
        "\x1b[31msandforge: there is no session 'nobody'\x1b[0m\n"
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        for words, code in ((["ps"], 0), (["exec", "nobody", "--", "true"], 125),
                            (["describe", "local"], 0)):
            assert "\x1b" not in on_terminal(t, *words, env=env, code=code)
    # An empty one says nothing.
    assert "\x1b" in on_terminal(t, "ps", env={"NO_COLOR": ""})


def test_output_of_a_command_is_passed_on_as_it_is(t):
    session = t.session()
    ran = t.sf("exec", session, "--", "printf", "%s", EVIL)
    assert ran.text == EVIL


def test_progress_is_for_terminals(t):
    repo = t.repository()
    words = ["run", "--provider", "local", "--repo", repo, "--setup", "echo from set-up"]
    quiet = t.sf(*words, "--", "true")
    assert quiet.out == b"" and quiet.err == b"", quiet
    loud = t.sf(*words, "--progress", "always", "--", "true")
    assert "from set-up\n" in loud.error_text and loud.out == b"", loud
    assert "from set-up" in on_terminal(t, *words, "--", "true")
    assert "from set-up" not in on_terminal(t, *words, "--progress", "never", "--", "true")


def harmless(text, kept="\n\t"):
    bad = [c for c in text if (ord(c) < 32 or 127 <= ord(c) < 160 or 0x202a <= ord(c) <= 0x202e or
                               0x2066 <= ord(c) <= 0x2069) and c not in kept]
    return not bad


def test_names_of_commands_in_ps(t):
    session = t.session()
    t.sf("exec", session, "--", "sh", "-c", "true", EVIL + "\n1  2  running  fake")
    shown = t.sf("ps", session)
    assert harmless(shown.text) and len(shown.text.splitlines()) == 2, shown
    # The JSON has them as they are.
    (process,) = t.sf("ps", session, "--json").json
    assert EVIL in process["command"], process


def test_ids_of_sessions(t):
    for name in (EVIL, "a\u009bb", "a\nb"):
        refused = t.sf("start", "--provider", "local", "--session", name, code=2)
        assert harmless(refused.error_text), refused
        for words in (["exec", name, "--", "true"], ["ps", name], ["rm", name], ["stop", name]):
            shown = t.sf(*words, code=125)
            assert harmless(shown.error_text) and shown.out == b"", shown
    assert not os.path.exists(t.root)


def test_words_of_the_command_line(t):
    for words in ([EVIL], ["--" + EVIL], ["run", "--timeout", EVIL, "--", "true"],
                  ["run", "-e", EVIL, "--", "true"], ["describe", EVIL],
                  ["run", "--provider", EVIL, "--", "true"], ["--config", EVIL, "ps"],
                  ["run", "--repo", EVIL, "--", "true"]):
        shown = t.sf(*words, code=None)
        assert shown.code in (2, 125) and harmless(shown.error_text), (words, shown)


def test_messages_of_set_up(t):
    repo = t.repository()
    failed = t.sf("run", "--provider", "local", "--repo", repo, "--setup",
                  f"printf '%s\\n' '{EVIL}' >&2; exit 3", "--", "true", code=125)
    assert harmless(failed.error_text) and "]0;pwned" in failed.error_text, failed


def test_a_configuration_and_files_with_evil_names(t):
    t.write("c.yaml", 'sandbox: {provider: local, options: {"\\e[31mred": 1}}\n')
    for words in (["config", "check", "c.yaml"], ["--config", "c.yaml", "run", "--", "true"]):
        shown = t.sf(*words, code=None)
        assert shown.code in (1, 125) and harmless(shown.text + shown.error_text), shown
    t.write("plugins/" + EVIL.replace("/", "") + ".so", "no library")
    for words in (["plugins", "doctor"], ["providers"], ["--log-level", "debug", "providers"]):
        shown = t.sf("--plugin-path", t.path("plugins"), *words, code=None)
        assert harmless(shown.text + shown.error_text), shown
        assert "pwned" in shown.text or words != ["plugins", "doctor"], shown


def stty(descriptor, *words):
    return subprocess.run(["stty", *words], stdin=descriptor, capture_output=True, check=True).stdout


def with_terminal(t, session, script, code, during=None):
    """A command with a terminal of its own; ours must be afterwards as it was."""
    ours, theirs = pty.pair(rows=31, cols=97)
    before = stty(theirs, "-g")
    child = t.spawn("exec", "-t", session, "--", "sh", "-c", script, stdin=theirs, stdout=theirs,
                    stderr=theirs, env={"TERM": "xterm-256color"})
    if during:
        during(ours, theirs, child)
    ended = t.finish(child)
    assert ended.code == code, ended
    assert stty(theirs, "-g") == before
    os.close(theirs)
    shown = pty.read_all(ours)
    os.close(ours)
    return shown.replace(b"\r\n", b"\n")


def test_a_command_with_a_terminal(t):
    session = t.session()
    shown = with_terminal(t, session, "stty size; echo $TERM; tty | grep -c pts; exit 5", 5)
    assert shown == b"31 97\nxterm-256color\n1\n", shown

    def resize(ours, theirs, child):
        pty.read_until(ours, b"ready")
        stty(theirs, "rows", "20", "cols", "60")
        child.send_signal(signal.SIGWINCH)
        pty.read_until(ours, b"20 60")
    with_terminal(t, session, "trap 'stty size; exit 6' WINCH; echo ready; "
                  "while :; do sleep 0.05; done", 6, resize)


def test_the_terminal_is_restored_whatever_happens(t):
    session = t.session()

    def signals(*numbers):
        def send(ours, theirs, child):
            pty.read_until(ours, b"ready")
            for number in numbers:
                child.send_signal(number)
                if number != numbers[-1]:
                    pty.read_until(ours, b"asked")
        return send
    stubborn = "trap 'echo asked' TERM HUP INT; echo ready; while :; do sleep 0.05; done"
    with_terminal(t, session, "echo ready; sleep 11226", 143, signals(signal.SIGTERM))
    with_terminal(t, session, stubborn, 143, signals(signal.SIGTERM, signal.SIGTERM))
    with_terminal(t, session, "exec no-such-command", 127)
    with_terminal(t, session, "kill -9 $$", 137)


def test_a_terminal_without_one_of_ours(t):
    session = t.session()
    ran = t.sf("exec", "-t", session, "--", "sh", "-c", "test -t 0 && stty size", code=0)
    assert ran.out == b"24 80\r\n", ran


def test_closed_standard_descriptors(t):
    """Nothing of ours takes the place of what whoever started us closed."""
    session = t.session()

    def closed(redirections, *words):
        return t.finish(t.spawn(*words, through=["sh", "-c", 'exec "$@" ' + redirections, "sh"]))
    for words in (["exec", "-i", session], ["exec", session], ["run", "-i", "--provider", "local"]):
        ran = closed("<&-", *words, "--", "sh", "-c", "cat; echo hi")
        assert (ran.code, ran.out, ran.err) == (0, b"hi\n", b""), ran
        ran = closed(">&-", *words, "--", "sh", "-c", "echo lost; echo err >&2")
        assert ran.code == 125 and ran.error_text.endswith(
            "sandforge: the output cannot be written: Bad file descriptor\n"), ran
        ran = closed("2>&-", *words, "--", "echo", "hi")
        assert (ran.code, ran.out) == (0, b"hi\n"), ran
        ran = closed("<&- >&- 2>&-", *words, "--", "true")
        assert ran.code == 0, ran
    assert closed(">&-", "ps").code == 125
    assert t.sessions() == [session]


main(globals())
