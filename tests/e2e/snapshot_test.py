"""Checkpoints: captured, listed, booted from and removed; nothing else ever removes one."""

import os

from support.main import main


def ids(t, session):
    return [one["name"] for one in t.sf("snapshot", session, "--list", "--json").json]


def test_a_session_that_is_removed_and_made_again(t):
    t.session("--session", "s")
    t.sf("exec", "s", "--", "sh", "-c", "echo kept > file")
    assert t.sf("snapshot", "s").text == "s\n"
    t.sf("exec", "s", "--", "sh", "-c", "echo newer > file")
    t.sf("rm", "s")
    started = t.sf("start", "--provider", "local", "--session", "s", "--json").json["started"]
    assert (started["outcome"], started["provenance"]) == ("created", "checkpoint"), started
    assert t.sf("exec", "s", "--", "cat", "file").text == "kept\n"
    # What the checkpoint took the place of is told, and there.
    told = [w for w in started["warnings"] if "before-checkpoint" in w]
    folder = told[0].split(" are in ")[1].split(" until ")[0]
    with open(os.path.join(folder, "file")) as file:
        assert file.read() == "newer\n"
    t.sf("rm", "s")
    assert os.path.exists(os.path.join(folder, "file"))
    t.sf("start", "--provider", "local", "--session", "s")
    assert ids(t, "s") == ["s"]
    assert t.sf("snapshot", "s", "--remove", "s").text == "s\n"
    assert ids(t, "s") == []
    again = t.sf("snapshot", "s", "--remove", "s", "--json", code=125).json["error"]
    assert (again["code"], again["reason"]) == ("NOT_FOUND", "snapshot.not_found"), again
    t.sf("snapshot", "s")
    assert t.sf("snapshot", "s", "--remove", "s", "--json").json == {"session": "s", "removed": "s"}


def test_a_checkpoint_for_other_sessions(t):
    t.session("--session", "one")
    t.sf("exec", "one", "--", "touch", "of-one")
    shown = t.sf("snapshot", "one", "--name", "base", "--json").json
    assert shown["session"] == "one" and shown["checkpoint"]["name"] == "base", shown
    assert shown["checkpoint"]["bytes"] == 0 and "createdAt" in shown["checkpoint"], shown
    assert "warnings" not in shown["checkpoint"], shown
    t.session("--session", "two", "--from", "base")
    assert t.sf("exec", "two", "--", "ls").text == "of-one\n"
    ran = t.sf("run", "--provider", "local", "--from", "base", "--", "ls")
    assert ran.text == "of-one\n", ran
    again = t.sf("start", "--session", "two", "--from", "base")
    assert "--from was not applied: the session 'two' has a machine already" in again.error_text
    missing = t.sf("start", "--provider", "local", "--session", "three", "--from", "nothing",
                   code=125)
    assert "there is no checkpoint \"nothing\"" in missing.error_text, missing
    rows = t.sf("snapshot", "two", "--list").text.splitlines()
    assert [row.split()[0] for row in rows] == ["CHECKPOINT", "base"], rows
    mistyped = t.sf("snapshot", "two", "--remove", "bsae", code=125)
    assert mistyped.out == b"" and mistyped.error_text == (
        "sandforge: there is no checkpoint 'bsae', did you mean 'base'?\n"), mistyped
    t.sf("snapshot", "two", "--remove", "base")


def test_checkpoints_of_a_session_that_is_gone(t):
    t.session("--session", "s")
    t.sf("snapshot", "s", "--name", "base")
    t.sf("rm", "s")
    of_local = ["snapshot", "--provider", "local"]
    assert [one["name"] for one in t.sf(*of_local, "--list", "--json").json] == ["base"]
    assert t.sf(*of_local, "--remove", "base", "--json").json == {"provider": "local",
                                                                 "removed": "base"}
    assert t.sf(*of_local, "--list", "--json").json == []
    assert t.sf(*of_local, "--remove", "base", code=125).error_text == (
        "sandforge: there is no checkpoint 'base'\n")
    # The options of the configuration say which checkpoints these are.
    t.write("c.yaml", f"sandbox: {{provider: local, options: {{root: {t.path('other')}}}}}\n")
    t.sf("--config", "c.yaml", "start", "--session", "o")
    t.sf("snapshot", "o")
    t.sf("rm", "o")
    assert [one["name"] for one in t.sf("--config", "c.yaml", *of_local, "--list", "--json").json] \
        == ["o"]
    t.sf("--config", "c.yaml", *of_local, "--remove", "o")
    assert t.sessions() == []


def test_nothing_to_capture_is_a_failure(t):
    made_up = t.session()
    shown = t.sf("snapshot", made_up, code=125)
    assert shown.out == b"" and "nothing was captured: the sandbox has no name" in shown.error_text
    assert shown.error_text.endswith(
        f"\n  hint: give the checkpoint a name: sandforge snapshot {made_up} --name NAME\n"), shown
    t.session("--session", "s")
    t.sf("stop", "s")
    error = t.sf("snapshot", "s", "--json", code=125).json["error"]
    assert error["reason"] == "snapshot.nothing_captured", error
    assert "does not run" in error["message"], error
    assert error["details"]["hint"] == ("start it, then try again: sandforge start --session s && "
                                        "sandforge snapshot s"), error
    assert t.sf("ps", "--json").json[0]["status"] != "starting"
    assert ids(t, "s") == []
    assert t.sf("snapshot", "nobody", code=125).error_text.count("nobody") >= 1


def test_what_cannot_be_kept_is_told(t):
    t.session("--session", "s")
    t.sf("exec", "s", "--", "mkfifo", "pipe")
    shown = t.sf("snapshot", "s")
    assert "1 socket, pipe or device was left out, such as pipe" in shown.error_text, shown
    warnings = t.sf("snapshot", "s", "--json").json["checkpoint"]["warnings"]
    assert warnings == ["1 socket, pipe or device was left out, such as pipe"], warnings
    t.sf("snapshot", "s", "--remove", "s")


def test_wrong_words(t):
    for words in (["snapshot"], ["snapshot", "s", "--list", "--name", "n"],
                  ["snapshot", "s", "--list", "--remove", "n"],
                  ["snapshot", "s", "--name", "n", "--remove", "n"],
                  ["snapshot", "s", "--provider", "local", "--list"],
                  ["snapshot", "--provider", "local"], ["snapshot", "--list"],
                  ["snapshot", "--provider", "local", "--name", "n"],
                  ["snapshot", "s", "--name", ""], ["snapshot", "s", "--remove", "a/b"],
                  ["start", "--from", ""], ["run", "--from", "..", "--", "true"]):
        shown = t.sf(*words, code=2)
        assert shown.out == b"", shown


main(globals())
