"""Values of variables are in the sandbox, and in no file, no log and no other argument list."""

import os
import re
import subprocess
import uuid

from support import processes
from support.case import wait_until
from support.main import main

SECRET = "s3cr3t-value-0123456789"


def files_with(folder, needle):
    found = []
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                if needle.encode() in file.read():
                    found.append(path)
    return found


def argument_lists_with(needle, but):
    return {pid: line for pid, line in
            ((pid, processes.command_line(pid)) for pid in processes.everybody())
            if needle in line and pid not in (but, os.getpid())}


def test_a_value_given_to_one_call(t):
    child = t.spawn("--log-level", "debug", "run", "--provider", "local", "--session", "s",
                    "--keep", "-i", "--env", f"TOKEN={SECRET}", "--repo", t.repository(),
                    "--setup", 'test -n "$TOKEN"', "--", "sh", "-c",
                    'echo ready; read go; printf %s "$TOKEN" | wc -c', stdin=-1)
    assert child.stdout.readline() == b"ready\n"
    assert files_with(t.state, SECRET) == [] and files_with(t.root, SECRET) == []
    assert argument_lists_with(SECRET, child.pid) == {}
    child.stdin.write(b"go\n")
    ran = t.finish(child, 0)
    assert int(ran.out) == len(SECRET), ran
    assert SECRET.encode() not in ran.err, ran
    assert files_with(t.state, SECRET) == []
    shown = t.sf("ps", "--json")
    assert SECRET not in shown.text and shown.json[0]["env"] == [{"name": "TOKEN"}], shown

    # The next host has not got it, but the machine has, as long as it runs.
    warning = ("sandforge: warning: the value of TOKEN was given to another call only; "
               "name it again with --env\n")
    look = ["--", "sh", "-c", "echo ${TOKEN-unset}"]
    later = t.sf("exec", "s", *look)
    assert (later.text, later.error_text) == (SECRET + "\n", ""), later
    named = t.sf("exec", "s", "--env", "TOKEN=again", *look)
    assert (named.text, named.error_text) == ("again\n", ""), named
    t.sf("stop", "s")
    assert files_with(t.state, SECRET) == [] and files_with(t.root, SECRET) == []
    restarted = t.sf("exec", "s", *look)
    assert (restarted.text, restarted.error_text) == ("unset\n", warning), restarted


def test_a_value_of_the_host_is_found_again_by_its_name(t):
    host = {"TOKEN": SECRET}
    t.sf("start", "--provider", "local", "--session", "s", "--env", "TOKEN", env=host)
    assert files_with(t.state, SECRET) == []
    assert t.sf("ps", "--json").json[0]["env"] == [{"name": "TOKEN", "reference": "${TOKEN}"}]
    look = ["exec", "s", "--", "sh", "-c", "echo ${TOKEN-unset}"]
    assert t.sf(*look, env=host).text == SECRET + "\n"
    changed = t.sf(*look, env={"TOKEN": "another"})
    assert (changed.text, changed.error_text) == ("another\n", ""), changed
    left = t.sf(*look)
    assert left.text == "another\n" and "another call" not in left.error_text, left
    t.sf("stop", "s")
    missing = t.sf(*look)
    assert missing.text == "unset\n" and "TOKEN" in missing.error_text, missing
    assert SECRET not in missing.error_text


def test_of_a_value_given_twice_the_last_counts(t):
    t.sf("start", "--provider", "local", "--session", "s", "--env", "A=1", "--env", "A=2")
    assert t.sf("exec", "s", "--", "printenv", "A").text == "2\n"


def test_secrets_of_the_host_stay_outside(t):
    session = t.session()
    # Of this test alone: others give theirs to processes of their own meanwhile.
    secret = SECRET + "-" + uuid.uuid4().hex
    shown = t.sf("exec", session, "--", "sh", "-c", "env; cat /proc/self/environ",
                 env={"AWS_SECRET_ACCESS_KEY": secret, "TOKEN": secret})
    assert secret.encode() not in shown.out, shown
    # Nor in the environment of the process that owns the session's.
    assert not [pid for pid in processes.everybody() if pid != os.getpid() and
                secret.encode() in processes.environment(pid)]


def test_a_command_finds_no_secret_in_the_processes_of_its_user(t):
    """Root reads every environment, so the host is somebody else here."""
    through = t.as_nobody()
    if through:
        for folder in (t.dir, t.path("home")):
            os.chown(folder, 65534, 65534)
    # What the command could read of a process that does not forbid it.
    control = subprocess.Popen([*through, "sleep", "600"], env=dict(t.env, WORD="to-be-seen"))
    t.started.append(control)
    wait_until(lambda: processes.command_line(control.pid) == "sleep 600", "the control runs")
    ran = t.sf("run", "--provider", "local", "--", "sh", "-c",
               "cat /proc/[0-9]*/environ 2>/dev/null; :", through=through,
               env={"AWS_SECRET_ACCESS_KEY": SECRET, "TOKEN": SECRET})
    assert b"WORD=to-be-seen" in ran.out, "it sees other processes of its user"
    assert SECRET.encode() not in ran.out, [
        part for part in ran.out.split(b"\0") if SECRET.encode() in part]


def test_values_in_a_configuration(t):
    t.write("secret", SECRET + "\n", 0o600)
    t.write("c.yaml", "sandbox:\n  provider: local\n  options:\n    env:\n"
            "      FROM_FILE: file:secret\n      FROM_HOST: ${HOSTS}\n      PLAIN: plain\n")
    look = ["--", "sh", "-c", "echo $FROM_FILE $FROM_HOST $PLAIN ${HOME-unset}"]
    host = {"HOSTS": "of the host"}
    shown = t.sf("--config", "c.yaml", "run", "--keep", "--session", "s", *look, env=host)
    assert shown.text == f"{SECRET} of the host plain unset\n", shown
    assert files_with(t.state, SECRET) == []
    # A later call without the option reads the same file.
    again = t.sf("exec", "s", *look, env=host)
    assert again.text == shown.text, again
    t.sf("rm", "s", env=host)
    missing = t.sf("--config", "c.yaml", "run", "--", "true", code=125)
    assert "HOSTS" in missing.error_text and re.search(r"c\.yaml:6:\d+: ", missing.error_text)
    assert SECRET not in missing.error_text


def test_a_token_of_a_repository(t):
    """An address where nobody listens: what matters is where the token does not appear."""
    for words in (["--repo", f"http://ada:{SECRET}@127.0.0.1:9/x/y.git"],
                  ["--repo", "http://127.0.0.1:9/x/y.git", "--repo-token", "${GIT_TOKEN}"]):
        failed = t.sf("--log-level", "debug", "start", "--provider", "local", "--session", "s",
                      *words, code=125, env={"GIT_TOKEN": SECRET})
        assert SECRET.encode() not in failed.out + failed.err, failed
        assert files_with(t.state, SECRET) == [] and files_with(t.root, SECRET) == []
        t.sf("rm", "s")


def test_a_token_in_place_of_its_reference_is_refused(t):
    for words in (["--repo-token", SECRET], [f"--repo-token={SECRET}"],
                  ["--repo-token", "${GIT_TOKEN}" + SECRET], ["--repo-token", ""]):
        for command in (["start"], ["run"]):
            failed = t.sf("--log-level", "debug", *command, "--provider", "local", "--session", "s",
                          "--repo", "http://127.0.0.1:9/x/y.git", *words, code=2)
            assert "--repo-token" in failed.error_text, failed
            assert SECRET.encode() not in failed.out + failed.err, failed
    assert SECRET not in t.sf("ps", "--json").text
    assert files_with(t.state, SECRET) == [] and files_with(t.root, SECRET) == []


def test_the_state_is_private(t):
    t.session()
    for path in (t.state, t.root):
        assert os.stat(path).st_mode & 0o077 == 0, path
    for name in os.listdir(t.state):
        assert os.stat(os.path.join(t.state, name)).st_mode & 0o077 == 0, name


main(globals())
