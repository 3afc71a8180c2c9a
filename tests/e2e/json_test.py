"""--json: one document on standard output, whatever happens, with keys that stay."""

import base64
import os

from support import pty, strict_json
from support.main import main

ERROR = {"code", "reason", "message"}


def error_of(t, *words, code=125, **options):
    shown = t.sf(*words, code=code, **options)
    assert shown.err == b"", shown
    assert set(shown.json) == {"error"}, shown
    error = shown.json["error"]
    assert ERROR <= set(error) <= ERROR | {"details", "retryAfterMs", "commandMayHaveStarted"}, error
    return error


RESULT = ["outcome", "success", "exitCode", "stdout", "stderr", "executionTimeMs", "timedOut",
          "killed", "stdoutTruncated", "stderrTruncated", "stdoutDroppedBytes",
          "stderrDroppedBytes", "command", "commandMayHaveStarted"]


def test_run_and_exec(t):
    repo = t.repository()
    ran = t.sf("run", "--json", "--provider", "local", "--repo", repo, "--setup", "echo noise",
               "--", "sh", "-c", "cat README; echo err >&2; exit 3", code=3)
    answer = ran.json
    assert ran.err == b"", ran
    assert list(answer) == ["session", "kept", "started", "result"], answer
    assert list(answer["started"]) == ["outcome", "provenance", "generation", "setup",
                                       "warnings"], answer
    assert list(answer["started"]["setup"]) == ["ran", "heads", "failedRepositories"], answer
    assert list(answer["result"]) == RESULT, answer
    assert (answer["kept"], answer["result"]["stdout"], answer["result"]["stderr"],
            answer["result"]["exitCode"]) == (False, "hello\n", "err\n", 3), answer

    session = t.session()
    ran = t.sf("exec", session, "--json", "--", "printf", "\\033[31m\\377é\\0")
    # What is no UTF-8 is there byte by byte as well.
    assert list(ran.json) == ["session", "result"], ran
    assert list(ran.json["result"]) == RESULT + ["stdoutBase64"], ran
    assert ran.json["result"]["stdout"] == "\x1b[31m\ufffdé\0", ran
    exact = base64.b64decode(ran.json["result"]["stdoutBase64"])
    assert exact == b"\x1b[31m\xff\xc3\xa9\0", ran
    assert b"\x1b" not in ran.out
    ran = t.sf("run", "--provider", "local", "--json", "--", "sh", "-c", "printf '\\377' >&2")
    assert ran.json["result"]["stderrBase64"] == "/w==", ran
    late = t.sf("--json", "exec", session, "--timeout", "200ms", "--", "sleep", "1234", code=124)
    assert (late.json["result"]["outcome"], late.json["result"]["timedOut"]) == ("timed_out", True)


def test_start_ps_stop_and_rm(t):
    started = t.sf("start", "--json", "--provider", "local", "--session", "s", "--env", "A=1").json
    assert list(started) == ["session", "started"], started
    (record,) = t.sf("ps", "--json").json
    assert list(record) == ["id", "provider", "status", "generation", "sandboxId", "setup", "settings",
                            "context", "env", "createdAtNs", "lastUsedAtNs"], record
    t.sf("exec", "s", "--", "true")
    (process,) = t.sf("ps", "s", "--json").json
    assert list(process) == ["id", "pid", "command", "running", "exitCode"], process
    stopped = t.sf("stop", "--json", "s", "nobody", code=125)
    assert stopped.err == b"" and list(stopped.json) == ["stopped", "failed"], stopped
    assert stopped.json["stopped"] == ["s"]
    (failed,) = stopped.json["failed"]
    assert list(failed) == ["session", "error"] and failed["session"] == "nobody", failed
    assert t.sf("ps", "--json", "s").json == []
    assert t.sf("rm", "--json", "s").json == {"removed": ["s"], "failed": []}
    assert t.sf("ps", "--json").json == []


def test_providers_describe_and_settings(t):
    docker, provider = t.sf("providers", "--json").json
    assert (docker["provider"], provider["provider"]) == ("docker", "local")
    assert list(provider) == ["provider", "displayName", "description", "plugin", "version", "path",
                              "origin", "optionsSchema", "env"], provider
    described = t.sf("describe", "local", "--json").json
    assert list(described)[:3] == ["provider", "settingsSchema", "capabilities"], described
    assert described["capabilities"] == {"template": False,
                                         "builds": {"available": False, "history": False}}
    assert described["settingsSchema"]["properties"] == {}
    for key in ("displayName", "description", "optionsSchema"):
        assert described[key] == provider[key], described
    assert t.sf("settings", "effective", "local", "--json").json == {"provider": "local",
                                                                    "settings": {}}
    doctor = t.sf("plugins", "doctor", "--json").json
    assert list(doctor) == ["usable", "refused", "candidates", "notes", "notGranted",
                            "quarantined", "cleared"], doctor


def test_config_check(t):
    t.write("c.yaml", "sandbox: {provider: local, options: {rot: /tmp}}\n")
    checked = t.sf("config", "check", "--json", "c.yaml", code=1)
    assert checked.err == b"" and list(checked.json) == ["file", "valid", "issues", "unchecked",
                                                        "warnings"]
    assert checked.json["valid"] is False
    (issue,) = checked.json["issues"]
    assert issue == {"pointer": "/sandbox/options/rot", "message": 'unknown key "rot"',
                     "allowed": "root, env, guestSilenceMs", "suggestion": 'did you mean "root"?', "line": 1,
                     "column": 38}, issue
    t.write("good.yaml", "sandbox: {provider: local}\n")
    assert t.sf("config", "check", "--json", "good.yaml").json == {
        "file": "good.yaml", "valid": True, "issues": [], "unchecked": [], "warnings": []}
    t.write("unset.yaml", "sandbox: {provider: local, options: {env: {A: '${NOBODY_SET_IT}'}}}\n")
    unset = t.sf("config", "check", "--json", "unset.yaml", code=3).json
    assert unset["valid"] is None and unset["issues"] == [], unset
    assert "the variable NOBODY_SET_IT is not set" in unset["unchecked"][0], unset


def test_errors(t):
    assert error_of(t, "exec", "nobody", "--json", "--", "true") == {
        "code": "NOT_FOUND", "reason": "session.not_found",
        "message": "there is no session 'nobody'"}
    assert error_of(t, "--json", "run", "--", "true")["reason"] == "cli.no_provider"
    assert error_of(t, "describe", "nobody", "--json")["code"] == "NOT_FOUND"
    t.write("c.yaml", "sandbux: {}\n")
    refused = error_of(t, "--json", "--config", "c.yaml", "ps")
    assert refused["reason"] == "config.invalid" and refused["details"] == {
        "file": t.path("c.yaml")}, refused
    session = t.session()
    missing = error_of(t, "--json", "exec", session, "--", "nope", code=127)
    assert missing["reason"] == "command.not_found", missing
    failed = error_of(t, "run", "--json", "--provider", "local", "--repo", t.repository(),
                      "--setup", "echo why >&2; exit 17", "--", "true")
    assert failed["details"]["exitCode"] == 17 and failed["details"]["stderr"] == "why\n", failed
    kept = error_of(t, "run", "--json", "--keep", "--provider", "local", "--repo", t.path("origin"),
                    "--setup", "exit 17", "--", "true")
    assert kept["details"]["session"] in t.sessions(), kept
    half = error_of(t, "start", "--json", "--provider", "local", "--repo", t.path("origin"),
                    "--setup", "exit 17")
    assert half["details"]["session"] in t.sessions(), half


def test_wrong_command_lines(t):
    for words in (["--json"], ["--json", "nope"], ["run", "--json", "--nope", "--", "true"],
                  ["exec", "--json"], ["run", "--json"], ["start", "--json", "--", "true"],
                  ["run", "--json", "-e", b"\xff", "--timeout", b"\xff", "--", "true"]):
        error = error_of(t, *words, code=2)
        assert (error["code"], error["reason"]) == ("INVALID", "cli.usage"), error
    # After -- the word is no option.
    named = t.sf("ps", "--", "--json", code=125)
    assert named.out == b"" and "there is no session '--json'" in named.error_text, named


def test_nothing_but_json_with_what_goes_wrong_on_the_way(t):
    """Warnings, a plugin that is broken, progress, a log: none of them on standard output."""
    t.write("plugins/text.so", "no library\n")
    t.sf("start", "--provider", "local", "--session", "s", "--env", "A=1")
    for words in (["providers"], ["exec", "s", "--", "true"], ["ps"], ["ps", "s"],
                  ["run", "--progress", "always", "--provider", "local", "--setup", "echo noise",
                   "--", "true"]):
        shown = t.sf("--json", "--log-level", "debug", "--plugin-path", t.path("plugins"), *words)
        strict_json.parse(shown.out)


def test_json_on_a_terminal_has_no_colour(t):
    session = t.session()
    for words in (["ps"], ["providers"], ["exec", "nobody", "--", "true"], ["ps", session]):
        ours, theirs = pty.pair()
        child = t.spawn("--json", *words, stdin=theirs, stdout=theirs, stderr=theirs,
                        env={"TERM": "xterm"})
        os.close(theirs)
        shown = pty.read_all(ours)
        t.finish(child)
        os.close(ours)
        assert b"\x1b" not in shown, shown
        strict_json.parse(shown)


main(globals())
