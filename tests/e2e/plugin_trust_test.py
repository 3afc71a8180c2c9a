"""Which plugins run where, what they may do, and what is said of those that do not fit."""

import hashlib
import json
import os
import shutil
import subprocess

from support.case import BUILD
from support.main import main

FIXTURES = os.path.join(BUILD, "tests/unit/loader/fixtures/plugins")
SHIPPED = os.path.join(BUILD, "lib/sandforge/plugins")
MINIMAL = os.path.join(BUILD, "sdk/examples/example_minimal_c.so")
UNRULY = os.path.join(BUILD, "tests/unit/runner/fixtures/unruly.so")


def fixture(name):
    return os.path.join(FIXTURES, name, name + ".so")


def copy(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(source, target)
    os.chmod(target, 0o755)
    return target


def test_only_what_the_build_made_runs_inside_the_program(t):
    program = copy(t.program, t.path("prefix/bin/sandforge"))
    folder = t.path("prefix/lib/sandforge/plugins")
    for name in ("local.so", "sandforge-runner"):
        copy(os.path.join(SHIPPED, name), os.path.join(folder, name))
    copy(fixture("good_a"), os.path.join(folder, "good_a.so"))  # as `cmake --install` would
    copy(os.path.join(SHIPPED, "local.so"), t.path("elsewhere/local.so"))

    def isolation(*words, env=None):
        ran = subprocess.run([program, *words, "plugins", "doctor", "--json"], cwd=t.dir,
                             env={**t.env, **(env or {})}, capture_output=True, check=False)
        return {entry["path"].removeprefix(t.dir + "/"): entry.get("isolation")
                for entry in json.loads(ran.stdout)["candidates"]}

    inside = "prefix/lib/sandforge/plugins/"
    for env in (None, {"SANDFORGE_PLUGIN_PATH": folder}):
        assert isolation(env=env) == {inside + "good_a.so": "process",
                                      inside + "local.so": "inline"}, isolation(env=env)
    assert isolation("--plugin-path", folder)[inside + "good_a.so"] == "process"
    assert isolation("--plugin-path", "elsewhere")["elsewhere/local.so"] == "process"
    # What the configuration says holds, for both.
    t.write("c.yaml", "plugins: {policies: {good-a: {isolation: inline}, "
                      "sandforge-local: {isolation: process}}}\n")
    assert isolation("--config", "c.yaml") == {inside + "good_a.so": "inline",
                                               inside + "local.so": "process"}


def test_services_that_this_host_does_not_offer(t):
    words = ["--plugin-path", fixture("other_services")]
    why = ("its manifest names services that this host does not offer: proces (did you mean "
           "process?), http")
    doctor = t.sf(*words, "plugins", "doctor", code=1)
    assert f"\n  stage: missing_dependency\n  why: {why}\n" in doctor.text, doctor
    (entry,) = [entry for entry in t.sf(*words, "plugins", "doctor", "--json", code=1).json[
        "candidates"] if not entry["usable"]]
    assert entry["details"]["missingServices"] == ["proces", "http"], entry
    for action in (["run", "--provider", "fixture-other-services", "--", "true"],
                   ["describe", "fixture-other-services"]):
        failed = t.sf(*words, *action, code=125)
        assert why in failed.error_text, failed
    assert t.sessions() == []


def test_without_the_grant_of_commands_no_session_is_left(t):
    words = ["--plugin-path", MINIMAL, "run", "--provider", "minimal-c", "--", "echo", "hi"]
    ran = t.sf(*words, code=125)
    assert "plugins.policies.example-minimal-c.allow.process" in ran.error_text, ran
    assert "was not removed" not in ran.error_text, ran
    assert t.sessions() == [], ran
    t.write("c.yaml", "plugins: {policies: {example-minimal-c: {allow: {process: true}}}}\n")
    assert t.sf("--config", "c.yaml", *words).text == "hi\n"


def test_quarantine_counts_over_all_calls(t):
    words = ["--plugin-path", UNRULY]

    def run():
        return t.sf(*words, "run", "--provider", "unruly", "--shell", "end abort", code=125)

    ends = [run() for _ in range(5)]
    assert "SIGABRT" in ends[0].error_text and "quarantine" not in ends[0].error_text, ends[0]
    assert "is in quarantine: its process was lost 4 times" in ends[-1].error_text, ends
    doctor = t.sf(*words, "plugins", "doctor", code=1)
    assert "\n  stage: quarantined\n" in doctor.text, doctor
    t.sf(*words, "plugins", "doctor", "--clear-quarantine")
    again = run()
    assert "SIGABRT" in again.error_text and "quarantine" not in again.error_text, again
    t.sf(*words, "rm", "-f", *t.sessions())


main(globals())
