"""A local session stays in the folder that it was started in, whatever the root is by then."""

import os

from support import processes
from support.case import wait_until
from support.main import main


def leave_running(t, session, word, **options):
    """A file, and a process that lives on; its pid."""
    t.sf("exec", session, "--", "sh", "-c",
         f"echo mine > note; sh -c 'sleep 600; : {word}' > out 2>&1 &", **options)
    return wait_until(lambda: [pid for pid in processes.below(t.dir)
                               if word in processes.command_line(pid)], "it runs")


def ended(pids):
    return not any(processes.alive(pid) for pid in pids)


def goes_on(t, session, folder, env):
    """exec, ps, stop and rm with another environment find the session that is there."""
    assert t.sf("exec", session, "--", "pwd", env=env).text == folder + "\n"
    assert t.sf("exec", session, "--", "cat", "note", env=env).text == "mine\n"
    assert t.sf("ps", session, env=env).text.count("\n") > 1
    pids = leave_running(t, session, "to-stop", env=env)
    t.sf("stop", session, env=env)
    assert ended(pids), pids
    pids = leave_running(t, session, "to-remove", env=env)
    t.sf("rm", session, env=env)
    assert ended(pids), pids
    assert t.no_guest()


def goes_on_nowhere_else(root):
    assert not os.path.exists(root), os.listdir(root)


def test_another_root_in_the_environment(t):
    session = t.session("--session", "R")
    leave_running(t, session, "first")
    other = t.path("other")
    goes_on(t, session, f"{t.root}/R", {"SANDFORGE_LOCAL_ROOT": other})
    goes_on_nowhere_else(other)


def test_no_root_in_the_environment(t):
    session = t.session("--session", "R")
    leave_running(t, session, "first")
    goes_on(t, session, f"{t.root}/R", {"SANDFORGE_LOCAL_ROOT": None})
    goes_on_nowhere_else(t.path("home", ".mastracode"))


def test_another_home(t):
    here = {"SANDFORGE_LOCAL_ROOT": None}
    os.mkdir(t.path("moved"))
    t.sf("start", "--provider", "local", "--session", "R", env=here)
    leave_running(t, "R", "first", env=here)
    goes_on(t, "R", t.path("home", ".mastracode/web/sandboxes/R"),
            {"SANDFORGE_LOCAL_ROOT": None, "HOME": t.path("moved")})
    goes_on_nowhere_else(t.path("moved", ".mastracode"))


def test_an_edited_root_in_the_configuration(t):
    text = "sandbox:\n  provider: local\n  options: {root: %s}\n"
    file = t.write("c.yaml", text % t.path("one"))
    t.sf("start", "--config", file, "--session", "R")
    leave_running(t, "R", "first")
    t.write("c.yaml", text % t.path("two"))
    goes_on(t, "R", t.path("one", "R"), {})
    # The next one of that name is a new session, below the root of now.
    t.sf("start", "--config", file, "--session", "R")
    assert t.sf("exec", "R", "--", "pwd").text == t.path("two", "R") + "\n"


def test_a_run_in_a_session_that_is_there(t):
    session = t.session("--session", "R")
    t.sf("exec", session, "--", "sh", "-c", "echo mine > note")
    env = {"SANDFORGE_LOCAL_ROOT": t.path("other")}
    ran = t.sf("run", "--session", "R", "--provider", "local", "--", "cat", "note", env=env)
    assert ran.text == "mine\n", ran


def test_ps_names_the_folder(t):
    t.session("--session", "R")
    (shown,) = t.sf("ps").text.splitlines()[1:]
    assert shown.split()[-1] == f"{t.root}/R", shown
    (record,) = t.sf("ps", "--json").json
    assert record["sandboxId"] == f"{t.root}/R", record


def test_a_start_that_failed_may_be_tried_below_another_root(t):
    t.write("file", "")
    bad = {"SANDFORGE_LOCAL_ROOT": t.path("file", "root")}
    t.sf("start", "--provider", "local", "--session", "R", env=bad, code=125)
    assert t.sessions() == []
    t.session("--session", "R")
    assert t.sf("exec", "R", "--", "pwd").text == f"{t.root}/R\n"


main(globals())
