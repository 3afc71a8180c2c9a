"""Every exit code that hosts/cli/README.md names is reached."""

import os
import signal

from support import processes
from support.case import SOURCE, wait_until
from support.main import main


def test_a_commands_own_code_is_passed_on(t):
    session = t.session()
    for code in (0, 1, 2, 42, 124, 125, 126, 127, 255):
        for words in (["exec", session], ["run", "--provider", "local"]):
            ran = t.sf(*words, "--", "sh", "-c", f"exit {code}", code=code)
            assert ran.out == b"" and ran.err == b"", ran


def test_a_signal_is_128_and_its_number(t):
    session = t.session()
    for name in ("HUP", "INT", "QUIT", "KILL", "SEGV", "TERM"):
        number = getattr(signal, "SIG" + name)
        ran = t.sf("exec", session, "--", "sh", "-c", f"kill -{name} $$", code=128 + number)
        assert ran.out == b"" and ran.err == b"", ran
    t.sf("run", "--provider", "local", "--", "sh", "-c", "kill -9 $$", code=137)


def test_not_found_and_not_executable(t):
    session = t.session()
    t.sf("exec", session, "--", "sh", "-c", "echo 'echo hi' > script")
    for words in (["exec", session], ["run", "--provider", "local"]):
        missing = t.sf(*words, "--", "no-such-command", "x", code=127)
        assert "no-such-command" in missing.error_text, missing
        t.sf(*words, "--shell", "no-such-command", code=127)
    refused = t.sf("exec", session, "--", "./script", code=126)
    assert "script" in refused.error_text, refused
    t.sf("exec", session, "--shell", "./script", code=126)
    t.sf("exec", session, "--", "/", code=126)


def test_a_command_that_takes_too_long(t):
    session = t.session()
    for words in (["exec", session], ["run", "--provider", "local"]):
        ran = t.sf(*words, "--timeout", "300ms", "--", "sh", "-c",
                   "printf partial; trap '' TERM; sleep 1234 & sleep 1234", code=124)
        assert ran.out == b"partial", ran
        assert ran.error_text == "sandforge: the command took too long and was ended\n", ran
    wait_until(lambda: not [line for line in processes.below(t.dir).values() if "1234" in line],
               "the tree ends")
    assert t.sf("exec", session, "--timeout", "0", "--", "echo", "hi").text == "hi\n"
    assert t.sf("exec", session, "--timeout", "2h", "--", "echo", "hi").text == "hi\n"


def test_a_wrong_command_line_is_2_and_does_nothing(t):
    wrong = [
        [], ["nope"], ["--nope"], ["run"], ["run", "--"], ["run", "--nope", "--", "true"],
        ["run", "true"], ["run", "--timeout", "5x", "--", "true"],
        ["run", "--timeout", "-1", "--", "true"],
        ["run", "--timeout", "99999999999999h", "--", "true"],
        ["run", "--env", "=x", "--", "true"], ["run", "--env", "SURELY_NOT_SET", "--", "true"],
        ["run", "--progress", "sometimes", "--", "true"], ["run", "--ref", "main", "--", "true"],
        ["run", "--repo", "/a", "--repo", "/b", "--ref", "main", "--", "true"],
        ["run", "--shell", "true", "--", "true"], ["start", "--", "true"],
        ["start", "--ref", "main"], ["start", "--timeout", "5s"],
        ["exec"], ["exec", "s"], ["exec", "--", "true"], ["exec", "s", "t", "--", "true"],
        ["exec", "-i", "-n", "s", "--", "true"], ["ps", "a", "b"], ["ps", "--", "a", "b"],
        ["cp"], ["cp", "a"], ["cp", "a", "b"], ["cp", "s:a", "t:b"], ["cp", "", "s:a"],
        ["cp", "-r", "-", "s:a"], ["cp", "a", "s:b", "c"],
        ["stop"], ["rm"], ["providers", "x"], ["describe"], ["describe", "a", "b"],
        ["settings"], ["settings", "effective"], ["settings", "nope"], ["config"],
        ["config", "check"], ["config", "check", "a", "b"], ["plugins"], ["plugins", "doctor", "x"],
        ["start", "--session", ""], ["run", "--session", "", "--", "true"],
        ["start", "--session", "-x"], ["start", "--session=--x"], ["start", "--session", "a/b"],
        ["start", "--session", ".."], ["run", "--session", "a\\b", "--", "true"],
        ["run", "--repo", "/a/x", "--repo", "/b/x", "--", "true"],
        ["start", "--repo", "/a", "--ref", "--x"],
        ["fault-proxy", "--listen", "foo", "--to", "tcp:127.0.0.1:1"],
        ["fault-proxy", "--listen", "tcp:127.0.0.1:0", "--to", "tcp:127.0.0.1:99999"],
        ["providers", "--", "x"], ["--", "ps"], ["--log-level", "loud", "ps"], ["--config"], ["--config", "a", "--config", "b", "ps"],
    ]
    for words in wrong:
        refused = t.sf(*words, code=2)
        lines = refused.error_text.splitlines()
        assert refused.out == b"" and len(lines) == 2, (words, refused)
        assert lines[0].startswith("sandforge: ") and "--help" in lines[1], (words, refused)
    assert os.listdir(t.dir) == ["home"], os.listdir(t.dir)


def test_problems_are_1(t):
    t.sf("config", "check", t.write("bad.yaml", "sandbux: {}\n"), code=1)
    t.sf("config", "check", t.path("missing.yaml"), code=1)
    t.write("plugins/text.so", "no library\n")
    t.sf("--plugin-path", t.path("plugins"), "plugins", "doctor", code=1)


def test_what_could_not_be_checked_is_3(t):
    t.sf("config", "check", t.write("c.yaml", "sandbox: {provider: nobody}\n"), code=3)


def test_failures_of_sandforge_are_125_and_say_why(t):
    failing = [
        ["exec", "unknown", "--", "true"], ["ps", "unknown"], ["rm", "unknown"],
        ["stop", "unknown"], ["cp", "unknown:x", "y"], ["run", "--provider", "unknown", "--", "true"],
        ["describe", "unknown"], ["settings", "effective", "unknown"],
        ["--config", t.path("missing.yaml"), "ps"], ["run", "--", "true"],
        ["run", "--provider", "local", "--cwd", "/no/where", "--", "true"],
    ]
    for words in failing:
        failed = t.sf(*words, code=125)
        assert failed.out == b"" and failed.error_text.startswith("sandforge: "), (words, failed)


def test_help_and_version_are_0(t):
    assert t.sf("--help").err == b""
    assert t.sf("--version").text.startswith("sandforge ")
    t.sf("run", "--help", "--", "true")


def test_the_readme_and_help_name_the_same_codes(t):
    with open(os.path.join(SOURCE, "hosts/cli/README.md")) as file:
        rows = [line.split("|")[1].strip() for line in file if line.startswith("| ")]
    codes = rows[rows.index("exit code") + 1:]
    assert codes == ["the command's own", "1", "2", "3", "124", "125", "129, 130, 131, 143",
                     "141", "128 + n"], codes
    text = t.sf("--help").text
    for code in ("1", "2", "124", "125", "129 130", "131 143", "141", "128+n"):
        assert f"\n  {code} " in text, (code, text)
    for words, has in ((["conformance"], "\n  3 "), (["config", "check"], ", 3 no mistakes"),
                       (["plugins", "doctor"], ", 1 problems"), (["cp"], ", 1 what it was given"),
                       (["run"], "\n  124 "), (["exec"], "\n  128+n "), (["ps"], "125 sandforge")):
        assert has in t.sf(*words, "--help").text, words


def test_no_thread_to_be_had(t):
    nobody = t.as_nobody()
    os.mkdir(t.path("nobody"))
    if nobody:
        os.chown(t.path("nobody"), 65534, 65534)
    env = {"HOME": t.path("nobody"), "SANDFORGE_STATE_DIR": t.path("nobody/state"),
           "SANDFORGE_LOCAL_ROOT": t.path("nobody/root"),
           "SANDFORGE_RUNTIME_DIR": t.path("nobody/run")}
    said = ""
    # Of root's limits the kernel makes nothing, and of others' processes it counts all that run.
    for limit in range(1, 16):
        ran = t.sf("run", "--provider", "local", "-i", "--", "true", code=None, env=env, input=b"",
                   through=[*nobody, "prlimit", f"--nproc={limit}"])
        assert ran.code in (0, 125) and bool(ran.err) == (ran.code == 125), (limit, ran)
        said += ran.error_text
    assert "sandforge: no thread could be made" in said, said
    left = t.sf("ps", "--json", env=env, through=nobody).json
    unnamed = [record["id"] for record in left if f"'{record['id']}'" not in said]
    t.sf("rm", "-f", *[record["id"] for record in left], "none", env=env, through=nobody)
    assert not unnamed, (unnamed, said)


main(globals())
