"""The main job: a repository is checked out, set up, and commands run in its session."""

import hashlib
import os
import random
import threading

from support import processes
from support.case import BUILD, wait_until
from support.main import main


def test_run_checks_out_sets_up_and_runs(t):
    repo = t.repository()
    ran = t.sf("run", "--provider", "local", "--repo", f"file://{repo}", "--setup",
               "pwd >> ../setup-ran", "--", "git", "log", "--oneline", "-1")
    assert ran.text.endswith(" first\n") and len(ran.text.splitlines()) == 1, ran
    assert ran.err == b"", ran
    # The session is gone, its folder stays: so the provider promises.
    assert t.sessions() == []
    (folder,) = [name for name in os.listdir(t.root) if not name.startswith(".")]
    assert t.read("root", folder, "setup-ran").decode() == f"{t.root}/{folder}/origin\n"
    assert t.no_guest()


def test_a_repository_in_a_folder_with_spaces(t):
    os.makedirs(t.path("my code"))
    repo = os.path.join(t.path("my code"), "100% ü")
    os.rename(t.repository(), repo)
    for url in (repo, "file://" + repo.replace("%", "%25")):
        ran = t.sf("run", "--provider", "local", "--repo", url, "--", "cat", "README")
        assert ran.text == "hello\n" and ran.err == b"", (url, ran)


def test_set_up_runs_once_in_a_kept_session(t):
    repo = t.repository()
    args = ["--provider", "local", "--session", "kept", "--repo", repo, "--setup",
            "echo ran >> ../setup-ran", "--setup", "test -f README"]
    first = t.sf("run", *args, "--keep", "--", "pwd")
    assert first.text == f"{t.root}/kept/origin\n", first
    assert first.error_text == "sandforge: session kept\n", first
    again = t.sf("run", *args, "--", "sh", "-c", "cat README; cat ../setup-ran")
    assert again.text == "hello\nran\n", again
    # It existed before: it stays without --keep.
    assert t.sessions() == ["kept"]
    t.sf("stop", "kept")
    assert t.sf("exec", "kept", "--", "cat", "../setup-ran").text == "ran\n"


def warned(options, name):
    return (f"sandforge: warning: {options} not applied: the session '{name}' exists already, and "
            "only a new one is made by that\n")


def test_what_makes_a_session_is_not_dropped_silently(t):
    repo = t.repository()
    made = ["--repo", repo, "--ref", "main", "--setup", "touch ../done"]
    t.sf("start", "--provider", "local", "--session", "s", *made, "--cwd", t.path("work"))
    # What it has already is nothing to be told of.
    again = t.sf("start", "--session", "s", *made, "-C", t.path("work"))
    assert again.err == b"", again
    words = ["run", "--session", "s"]
    ran = t.sf(*words, "--repo", "/other", "--setup", "touch ../never", "--", "pwd")
    assert ran.text == t.path("work", "origin") + "\n", ran
    assert ran.error_text == warned("--repo and --setup were", "s") + "sandforge: session s\n", ran
    ran = t.sf(*words, "--repo", repo, "--ref", "x", "--repo-token", "${X}", "--", "true")
    assert ran.error_text.startswith(warned("--ref and --repo-token were", "s")), ran
    started = t.sf("start", "--session", "s", "--cwd", t.path("elsewhere"))
    assert started.error_text == warned("--cwd was", "s"), started
    assert not os.path.exists(t.path("elsewhere")) and not os.path.exists(t.path("work/never"))
    # Of the command, not of the session.
    assert t.sf(*words, "-C", "/", "--", "pwd").error_text == "sandforge: session s\n"

    for verb in (["run", "--json", "--session", "s", "--setup", "x", "--", "true"],
                 ["start", "--json", "--session", "s", "--setup", "x"]):
        answer = t.sf(*verb)
        (told,) = answer.json["started"]["warnings"]
        assert answer.err == b"" and warned("--setup was", "s").endswith(told + "\n"), answer


def test_names_after_two_dashes(t):
    t.session("--session", "ab")
    t.session("--session", "cd")
    assert t.sf("ps", "--", "ab").text.startswith("ID")
    assert t.sf("stop", "--json", "--", "ab", "cd").json["stopped"] == ["ab", "cd"]
    assert t.sf("rm", "--", "ab").text == "ab\n"
    assert t.sf("rm", "-f", "cd", "--", "-x", "-f").text == "cd\n-x\n-f\n"
    assert t.sessions() == []


def test_a_start_that_makes_no_machine_leaves_no_session(t):
    nowhere = "unix://" + t.path("no.sock")
    for words in (["start"], ["run", "--keep", "--session", "d", "--", "true"], ["run", "--", "true"]):
        failed = t.sf(words[0], "--provider", "docker", *words[1:], code=125,
                      env={"DOCKER_HOST": nowhere})
        assert failed.out == b"" and "no Docker engine at " + nowhere in failed.error_text, failed
        assert len(failed.error_text.splitlines()) == 1, failed
        assert t.sessions() == [], failed
    error = t.sf("start", "--json", "--session", "d", "--provider", "local", "--from", "nothing",
                 code=125).json["error"]
    assert error["code"] == "NOT_FOUND" and "session" not in error.get("details", {}), error
    assert t.sessions() == []
    # One that was there before is not this call's to remove.
    t.session("--session", "d")
    t.sf("start", "--session", "d", "--from", "nothing", code=125)
    assert t.sessions() == ["d"]


def test_keep_alone_makes_a_session_that_stays(t):
    ran = t.sf("run", "--provider", "local", "--keep", "--", "sh", "-c", "echo hi > note")
    (session,) = t.sessions()
    assert ran.error_text == f"sandforge: session {session}\n", ran
    assert t.sf("exec", session, "--", "cat", "note").text == "hi\n"


def test_a_session_from_start_to_rm(t):
    started = t.sf("start", "--provider", "local")
    session = started.text.strip()
    assert started.text == session + "\n" and session.startswith("s-"), started
    assert started.err == b"", started

    # Every call is another process.
    t.sf("exec", session, "--", "sh", "-c", "echo hello > note")
    assert t.sf("exec", session, "--", "cat", "note").text == "hello\n"
    (shown,) = t.sf("ps").text.splitlines()[1:]
    assert shown.split()[:4] == [session, "local", "running", "none"], shown

    stopped = t.sf("stop", session)
    assert stopped.text == session + "\n"
    assert t.no_guest()
    (shown,) = t.sf("ps").text.splitlines()[1:]
    assert shown.split()[:3] == [session, "local", "stopped"], shown
    assert t.sf("exec", session, "--", "cat", "note").text == "hello\n"

    removed = t.sf("rm", session)
    assert removed.text == session + "\n"
    assert t.no_guest()
    unknown = t.sf("exec", session, "--", "true", code=125)
    assert unknown.error_text == f"sandforge: there is no session '{session}'\n", unknown
    assert t.sf("rm", session, code=125).error_text == unknown.error_text
    assert t.sf("stop", session, code=125).error_text == unknown.error_text
    assert t.sf("rm", "-f", session).text == session + "\n"


def test_several_sessions_at_once_in_stop_and_rm(t):
    one, two = t.session(), t.session()
    stopped = t.sf("stop", one, "nobody", two, code=125)
    assert stopped.text == f"{one}\n{two}\n", stopped
    assert stopped.error_text == "sandforge: there is no session 'nobody'\n", stopped
    assert t.no_guest()
    assert t.sf("rm", one, two).text == f"{one}\n{two}\n"
    assert t.sessions() == []


def test_five_mebibytes_through_stdin_and_back(t):
    data = random.Random(7).randbytes(5 << 20)
    session = t.session()
    for words in (["exec", "-i", session], ["exec", session],
                  ["run", "--provider", "local", "-i"]):
        ran = t.sf(*words, "--", "cat", input=data)
        assert hashlib.sha256(ran.out).digest() == hashlib.sha256(data).digest(), len(ran.out)
        assert ran.err == b"", ran


def test_stdin_is_at_its_end_unless_it_is_passed_on(t):
    session = t.session()
    assert t.sf("run", "--provider", "local", "--", "cat", input=b"kept back").out == b""
    assert t.sf("exec", "-n", session, "--", "cat", input=b"kept back").out == b""


def test_a_provider_without_stdin_needs_no_option_where_nothing_is_passed_on(t):
    # Its sandboxes know the command image, and take no input.
    words = ["--plugin-path", os.path.join(BUILD, "sdk/examples/example_builds_cpp.so")]
    session = t.sf(*words, "start", "--provider", "builds-cpp").text.strip()
    exec_ = [*words, "exec", session, "--shell", "image"]
    assert t.sf(*exec_).text == "base\n", "standard input is /dev/null"
    lost = t.sf(*exec_, input=b"not to be lost", code=125)
    assert lost.out == b"" and "(spawn.stdin)" in lost.error_text, lost
    assert lost.error_text.endswith("\n  hint: with -n the command gets none\n"), lost
    assert t.sf(*exec_, "-n", input=b"refused").text == "base\n"
    assert "hint" not in t.sf(*exec_, "-i", code=125).error_text


def test_a_command_that_reads_no_stdin_ends_at_once(t):
    session = t.session()
    # The writing end stays open, as that of a shell that waits would.
    child = t.spawn("exec", "-i", session, "--", "sh", "-c", "read line; echo $line", stdin=-1)
    child.stdin.write(b"one\n")
    child.stdin.flush()
    wait_until(lambda: child.poll() is not None, "exec ends with its command")
    assert child.stdout.read() == b"one\n"
    child.stdin.close()


def test_both_streams_arrive_apart_and_while_the_command_runs(t):
    session = t.session()
    child = t.spawn("exec", "-i", session, "--", "sh", "-c",
                    "echo out; echo err >&2; read go; echo end", stdin=-1)
    assert child.stdout.readline() == b"out\n"
    assert child.stderr.readline() == b"err\n"
    child.stdin.write(b"go\n")
    child.stdin.close()
    assert child.stdout.readline() == b"end\n"
    assert child.wait(60) == 0


def test_variables_reach_the_command_and_only_it(t):
    ran = t.sf("run", "--provider", "local", "--env", "A=b c", "-e", "EMPTY=", "-e", "FROM_HOST",
               "--", "sh", "-c", 'echo "$A|${EMPTY-unset}|$FROM_HOST|${OTHER-unset}"',
               env={"FROM_HOST": "host's", "OTHER": "secret"})
    assert ran.text == "b c||host's|unset\n", ran

    session = t.session()
    shown = ["--", "sh", "-c", "echo ${A-unset} ${B-unset}"]
    assert t.sf("exec", session, "-e", "A=call", "-e", "B=2", *shown).text == "call 2\n"
    assert t.sf("exec", session, *shown).text == "unset unset\n"


def test_words_of_a_command_arrive_as_they_were_given(t):
    words = ["a b", "$HOME", "x'y", "", "-n", "--", "*", "two\nlines", "é", "\t", b"\xff\xfe"]
    ran = t.sf("run", "--provider", "local", "--", "printf", "%s\\0", *words)
    expected = b"".join((w if isinstance(w, bytes) else w.encode()) + b"\0" for w in words)
    assert ran.out == expected, ran
    assert t.sf("run", "--provider", "local", "--shell", "echo a | tr a b && echo $0").text == \
        "b\n/bin/sh\n"


def test_working_directories(t):
    session = t.session()
    home = f"{t.root}/{session}"
    assert t.sf("exec", session, "--", "pwd").text == home + "\n"
    t.sf("exec", session, "--", "mkdir", "sub")
    assert t.sf("exec", session, "-C", "sub", "--", "pwd").text == home + "/sub\n"
    assert t.sf("exec", session, "-C", "/", "--", "pwd").text == "/\n"
    gone = t.sf("exec", session, "-C", "nowhere", "--", "pwd", code=125)
    assert "nowhere" in gone.error_text, gone
    elsewhere = t.path("elsewhere")
    other = t.session("--cwd", elsewhere)
    assert t.sf("exec", other, "--", "pwd").text == elsewhere + "\n"


def test_a_set_up_that_fails_keeps_its_error_and_nothing_runs(t):
    repo = t.repository()
    args = ["--provider", "local", "--repo", repo, "--setup", "echo 'no compiler' >&2; exit 17"]
    ran = t.sf("run", *args, "--", "touch", t.path("ran"), code=125)
    lines = ran.error_text.splitlines()
    assert "set-up command 1 of 'origin' failed with exit code 17" in lines[0], ran
    assert lines[1:] == ["  command: echo 'no compiler' >&2; exit 17", "  stderr, the last of it:",
                         "    no compiler"], ran
    assert not os.path.exists(t.path("ran"))
    assert t.sessions() == [] and t.no_guest()

    # A session that was to stay is marked, says why, and is removed like any other.
    kept = t.sf("run", *args, "--keep", "--session", "broken", "--", "touch", t.path("ran"),
                code=125)
    assert kept.error_text.splitlines()[-1] == "sandforge: session broken", kept
    assert not os.path.exists(t.path("ran"))
    (record,) = t.sf("ps", "--json").json
    assert (record["status"], record["setup"]) == ("error", "failed"), record
    started = t.sf("start", "--session", "half", *args, code=125)
    assert "exit code 17" in started.error_text and "half" in started.error_text, started
    assert started.out == b"", started
    # Each use tries the set-up again, and fails the same way.
    again = t.sf("exec", "half", "--", "touch", t.path("ran"), code=125)
    assert "exit code 17" in again.error_text, again
    assert not os.path.exists(t.path("ran"))
    t.sf("rm", "broken", "half")
    assert t.no_guest()


def test_a_set_up_that_fails_shows_what_it_wrote(t):
    secret = "hunter2-hunter2"
    setup = 'seq 1 30; echo "compile error $TOKEN"; exit 2'
    args = ["--provider", "local", "-e", "TOKEN", "--setup", setup]
    host = {"TOKEN": secret}
    ran = t.sf("run", *args, "--", "true", code=125, env=host)
    shown = [*(str(i) for i in range(12, 31)), "compile error ***"]
    lines = ran.error_text.splitlines()
    assert "set-up command 1 of the workspace failed with exit code 2" in lines[0], ran
    assert lines[1:] == ["  command: " + setup, "  stdout, the last of it:",
                         *("    " + line for line in shown)], ran
    details = t.sf("run", "--json", *args, "--", "true", code=125,
                   env=host).json["error"]["details"]
    assert details["stdout"] == "\n".join(shown) + "\n" and details["stderr"] == "", details
    assert details["command"] == setup and details["exitCode"] == 2, details
    late = t.sf("run", "--provider", "local", "--setup-timeout", "500ms", "--setup",
                "echo waiting; sleep 1234", "--", "true", code=125)
    assert late.error_text.splitlines()[1:] == [
        "  command: echo waiting; sleep 1234", "  stdout, the last of it:", "    waiting"], late
    t.sf("start", *args, "--session", "s", code=125, env=host)
    again = t.sf("exec", "s", "--", "true", code=125, env=host)
    assert again.error_text.splitlines()[1:] == lines[1:], again


def test_a_set_up_that_was_mended_runs_at_the_next_use(t):
    repo = t.repository()
    t.sf("start", "--provider", "local", "--session", "s", "--repo", repo, "--setup",
         f"test -e {t.path('compiler')} && echo ran >> ../setup-ran", code=125)
    t.write("compiler", "")
    assert t.sf("exec", "s", "--", "cat", "../setup-ran").text == "ran\n"
    assert t.sf("exec", "s", "--", "cat", "../setup-ran").text == "ran\n"


def test_repositories_that_cannot_be_had(t):
    relative = t.sf("run", "--provider", "local", "--repo", "origin", "--", "true", code=2)
    assert "--repo: the clone URL is no https" in relative.error_text, relative
    assert not os.path.exists(t.root) and not os.path.exists(t.state)
    for url in (t.path("nope"), f"file://{t.path('nope')}"):
        missing = t.sf("run", "--provider", "local", "--repo", url, "--", "true", code=125)
        assert "git could not fetch 'nope'" in missing.error_text.splitlines()[0], missing
        assert t.path("nope") in missing.error_text, missing
    bad_ref = t.sf("run", "--provider", "local", "--repo", t.repository(), "--ref", "nope", "--",
                   "true", code=125)
    assert "'nope'" in bad_ref.error_text, bad_ref
    assert t.sessions() == [] and t.no_guest()


def test_two_repositories_lie_side_by_side(t):
    one, two = t.repository("one"), t.repository("two")
    ran = t.sf("run", "--provider", "local", "--repo", one, "--repo", two, "--setup",
               "ls > listing", "--", "cat", "listing", "one/README", "two/README")
    assert ran.text == "listing\none\ntwo\nhello\nhello\n", ran


def test_a_session_with_an_odd_name_stays_below_the_root(t):
    names = ["x" * 255, "é", "a b", "%41", "CON", "..a", "a..b", "~", "_-", "A", "a"]
    for name in names:
        started = t.sf("start", "--provider", "local", f"--session={name}")
        assert started.text == name + "\n", started
        inside = t.sf("exec", name, "--", "pwd").text.strip()
        assert os.path.dirname(inside) == t.root, inside
    assert sorted(t.sessions()) == sorted(names)
    assert sorted(os.listdir(t.dir)) == ["home", "root", "state"], os.listdir(t.dir)
    for bad in ("..", ".", "a/../b", "/etc", "a\\b", "x" * 256, "a\nb", "a\x1bb", b"\xff"):
        refused = t.sf("start", "--provider", "local", "--session", bad, code=2)
        assert refused.error_text.startswith("sandforge: ") and refused.out == b"", refused
    assert sorted(t.sessions()) == sorted(names)
    t.sf("rm", *names)
    assert t.no_guest()


def test_detached_children_live_on_until_stop(t):
    session = t.session()
    ran = t.sf("exec", session, "--", "sh", "-c", "sleep 987654 & echo $!")
    pid = int(ran.text)
    assert processes.alive(pid)
    shown = t.sf("ps", session).text.splitlines()
    assert shown[0].split() == ["ID", "PID", "STATE", "COMMAND"], shown
    assert shown[1].split(None, 2)[2].endswith("exited 0  sh -c sleep 987654 & echo $!"), shown
    t.sf("stop", session)
    assert not processes.alive(pid)
    assert t.sf("ps", session).text == "ID  PID  STATE  COMMAND\n"


def test_commands_run_side_by_side_in_one_session(t):
    session = t.session()
    results = []

    def one(number):
        results.append(t.sf("exec", session, "--", "sh", "-c", f"echo {number}; exit {number}",
                            code=number).text)
    threads = [threading.Thread(target=one, args=(n,)) for n in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [f"{n}\n" for n in range(1, 6)], results


def test_two_runs_at_once_with_one_new_session(t):
    def run(name):
        return t.spawn("run", "--provider", "local", "--session", "shared", "--", "sh", "-c",
                       f"touch {t.path(name)}; while [ ! -e {t.path(name + '.end')} ]; "
                       f"do sleep 0.02; done; echo {name}")
    first = run("first")
    wait_until(lambda: os.path.exists(t.path("first")), "the first command runs")
    second = run("second")
    wait_until(lambda: os.path.exists(t.path("second")), "the second command runs")
    t.write("first.end", "")
    ended = t.finish(first, 0)
    assert ended.text == "first\n" and ended.error_text == \
        "sandforge: session shared stays: another call has it open\n", ended
    t.write("second.end", "")
    ended = t.finish(second, 0)
    assert ended.text == "second\n", ended
    # The one that made it was not the last one: it stays until somebody removes it.
    assert t.sf("exec", "shared", "--", "echo", "hi").text == "hi\n"
    t.sf("rm", "shared")
    assert t.no_guest()


def test_a_run_leaves_what_start_has_joined(t):
    child = t.spawn("run", "--provider", "local", "--session", "shared", "--", "sh", "-c",
                    f"touch {t.path('up')}; while [ ! -e {t.path('end')} ]; do sleep 0.02; done")
    wait_until(lambda: os.path.exists(t.path("up")), "the command runs")
    assert t.sf("start", "--session", "shared").text == "shared\n"
    t.write("end", "")
    t.finish(child, 0)
    assert t.sf("exec", "shared", "--", "echo", "hi").text == "hi\n"
    t.sf("rm", "shared")


def test_a_session_is_removed_without_the_references_of_its_configuration(t):
    t.write("c.yaml", f"sandbox: {{provider: local, options: {{root: {t.root}, "
            "env: {TOKEN: '${SURELY_NOT_SET}', FILE: 'file:token'}}}\n")
    t.write("token", "secret")
    given = {"SURELY_NOT_SET": "x"}
    for words in (["rm", "s"], ["rm", "-f", "s"]):
        t.sf("--config", "c.yaml", "start", "--session", "s", env=given)
        assert not t.no_guest()
        t.sf("exec", "s", "--", "true", code=125)
        removed = t.sf(*words)
        assert removed.text == "s\n" and removed.err == b"", removed
        assert t.no_guest() and t.sessions() == []


main(globals())
