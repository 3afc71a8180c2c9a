"""Which plugins run where, what they may do, and what is said of those that do not fit."""

import hashlib
import json
import os
import shutil
import subprocess

from support import processes
from support.case import BUILD, wait_until
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


def test_a_policy_that_fits_no_plugin(t):
    t.write("c.yaml", "plugins:\n  policies:\n    local: {isolation: process}\n    other: {}\n"
                      "sandbox: {provider: local}\n")
    local = "the policy 'local' fits no plugin that was found, did you mean 'sandforge-local'?\n"
    other = "the policy 'other' fits no plugin that was found\n"
    told = "".join(f"sandforge: warning: {t.dir}/c.yaml: {line}" for line in (local, other))
    ran = t.sf("--config", "c.yaml", "run", "--", "echo", "hi")
    assert ran.text == "hi\n" and ran.error_text == told, ran
    doctor = t.sf("--config", "c.yaml", "plugins", "doctor")
    assert doctor.error_text == told, doctor
    checked = t.sf("config", "check", "c.yaml", code=1)
    assert checked.err == b"", checked
    assert f"c.yaml:3:5: /plugins/policies/local: {local}" in checked.text, checked
    assert f"c.yaml:4:5: /plugins/policies/other: {other}" in checked.text, checked
    t.write("c.yaml", "plugins: {policies: {sandforge-lcoal: {isolation: process}}}\n")
    assert "did you mean 'sandforge-local'?" in t.sf("config", "check", "c.yaml", code=1).text
    # The policy of a plugin that is refused before its name is known fits by the file's name.
    t.write("plugins/mine.so", "no library\n")
    t.write("c.yaml", "plugins: {paths: [plugins], policies: {mine: {}}}\n")
    assert "policy" not in t.sf("--config", "c.yaml", "plugins", "doctor", code=1).error_text


def test_a_refused_plugin_is_not_said_to_be_absent(t):
    copy(fixture("good_a"), t.path("plugins/a.so"))
    path = t.path("plugins/a.so")
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    wrong = "0" * 64
    t.write("c d.yaml", f"plugins: {{paths: [plugins], pins: {{a.so: '{wrong}'}}}}\n"
                        "sandbox: {provider: fixture-good-a}\n")
    refused = f"\n  refused: {path}: its bytes are not the ones that it is pinned to"
    ran = t.sf("--config", "c d.yaml", "run", "--", "true", code=125)
    assert ran.error_text.startswith("sandforge: there is no provider fixture-good-a"), ran
    assert refused in ran.error_text, ran
    assert f"see sandforge --config '{t.dir}/c d.yaml' plugins doctor\n" in ran.error_text, ran
    checked = t.sf("config", "check", "c d.yaml", code=3)
    assert refused in checked.error_text, checked
    assert "see: sandforge --config 'c d.yaml' plugins doctor\n" in checked.error_text, checked
    # Without a configuration the command has what was given here.
    ran = t.sf("--plugin-path", fixture("bad_manifest"), "run", "--provider", "x", "--", "true",
               code=125)
    assert f"\n  refused: {fixture('bad_manifest')}: " in ran.error_text, ran
    assert f"see sandforge --plugin-path {fixture('bad_manifest')} plugins doctor\n" \
        in ran.error_text, ran
    as_json = t.sf("--plugin-path", fixture("bad_manifest"), "--json", "run", "--provider", "x", "--",
                   "true", code=125).json["error"]
    assert as_json["reason"] == "provider.unknown", as_json
    assert [entry["stage"] for entry in as_json["details"]["refused"]] == ["manifest_invalid"]
    assert digest != wrong


def test_services_that_this_host_does_not_offer(t):
    words = ["--plugin-path", fixture("other_services")]
    why = ("its manifest names services that this host does not offer: proces (did you mean "
           "process?), gpu")
    doctor = t.sf(*words, "plugins", "doctor", code=1)
    assert f"\n  stage: missing_dependency\n  why: {why}\n" in doctor.text, doctor
    (entry,) = [entry for entry in t.sf(*words, "plugins", "doctor", "--json", code=1).json[
        "candidates"] if not entry["usable"]]
    assert entry["details"]["missingServices"] == ["proces", "gpu"], entry
    for action in (["run", "--provider", "fixture-other-services", "--", "true"],
                   ["describe", "fixture-other-services"]):
        failed = t.sf(*words, *action, code=125)
        assert why in failed.error_text, failed
    assert t.sessions() == []
    # All that the fixture names are there.
    doctor = t.sf("--plugin-path", UNRULY, "plugins", "doctor")
    assert "has not set up" not in doctor.text, doctor


def test_secrets_of_the_configuration_come_by_name_and_grant(t):
    words = ["--config", "c.yaml", "--plugin-path", UNRULY, "run", "--provider", "unruly", "--shell"]
    t.write("token", "s3cret-of-a-file\n", 0o600)
    granted = "plugins: {policies: {unruly: {allow: {secrets: [file, variable, gone]}}}}\n"
    t.write("c.yaml", granted + "secrets:\n  file: file:token\n  variable: ${TOKEN}\n  other: x\n")
    host = {"TOKEN": "s3cret-of-the-host"}
    assert t.sf(*words, "secret file", env=host).text == "s3cret-of-a-file"
    assert t.sf(*words, "secret variable", env=host).text == "s3cret-of-the-host"
    assert 'what grants it is plugins: {policies: {unruly: {allow: {secrets: ["other"]}}}}' in \
        t.sf(*words, "secret other", env=host).text
    assert "the configuration has no secret gone: name it under secrets" in \
        t.sf(*words, "secret gone", env=host).text
    # Only the one that is asked for is read.
    assert t.sf(*words, "secret file").text == "s3cret-of-a-file"
    assert "the secret variable: the variable TOKEN is not set" in \
        t.sf(*words, "secret variable").text
    checked = t.sf("--plugin-path", UNRULY, "config", "check", "c.yaml", code=3)
    assert "c.yaml:4:13: the secret 'variable' cannot be read here: the variable TOKEN is not set" \
        in checked.error_text, checked
    # A literal is never shown.
    t.write("c.yaml", "secrets: {a: [s3cret-of-a-list]}\n")
    wrong = t.sf("config", "check", "c.yaml", code=1)
    assert "/secrets/a" in wrong.text and b"s3cret" not in wrong.out + wrong.err, wrong


def test_without_the_grant_of_commands_no_session_is_left(t):
    words = ["--plugin-path", MINIMAL, "run", "--provider", "minimal-c", "--", "echo", "hi"]
    ran = t.sf(*words, code=125)
    line = "plugins: {policies: {example-minimal-c: {allow: {process: true}}}}"
    assert f": the configuration does not grant it; what grants it is {line}" in ran.error_text, ran
    assert "was not removed" not in ran.error_text, ran
    assert t.sessions() == [], ran
    t.write("c.yaml", line + "\n")  # as it was said
    assert t.sf("--config", "c.yaml", *words).text == "hi\n"


def test_a_grant_that_is_missing_is_said_before_it_is_missed(t):
    plugin = "example-minimal-c"
    lacks = (f"the plugin '{plugin}' uses the host service process (commands on this machine), "
             "which nothing grants it: ")
    allow = "allow: {process: true}"
    paths = f"  paths: [{MINIMAL}]\n"
    sandbox = "sandbox: {provider: minimal-c}\n"
    # What stands there, and where which line is missing.
    for text, place, add in (
            ("plugins:\n" + paths + sandbox, "c.yaml:1:1: /plugins",
             f"add below plugins:  policies: {{{plugin}: {{{allow}}}}}"),
            ("plugins:\n" + paths + "  policies: {}\n" + sandbox, "c.yaml:3:3: /plugins/policies",
             f"add below plugins.policies:  {plugin}: {{{allow}}}"),
            ("plugins:\n" + paths + f"  policies:\n    {plugin}: {{isolation: process}}\n" + sandbox,
             f"c.yaml:4:5: /plugins/policies/{plugin}",
             f"add below plugins.policies.{plugin}:  {allow}"),
            ("plugins:\n" + paths + f"  policies:\n    {plugin}:\n      allow: {{env: [A]}}\n" + sandbox,
             f"c.yaml:5:7: /plugins/policies/{plugin}/allow",
             f"add below plugins.policies.{plugin}.allow:  process: true")):
        t.write("c.yaml", text)
        checked = t.sf("config", "check", "c.yaml", code=1)
        assert checked.text.startswith(f"{place}: {lacks}{add}\n") and checked.err == b"", checked
        doctor = t.sf("--config", "c.yaml", "plugins", "doctor", code=1)
        assert f"\nnot granted: {lacks}{add}\n" in doctor.text, doctor
    # Nothing but --plugin-path grants nothing, and nobody uses it yet.
    add = f"add to a configuration, and name it with --config:  plugins: {{policies: {{{plugin}: {{{allow}}}}}}}"
    doctor = t.sf("--plugin-path", MINIMAL, "plugins", "doctor")
    assert f"\nnot granted: {lacks}{add}\n" in doctor.text, doctor
    (entry,) = t.sf("--plugin-path", MINIMAL, "plugins", "doctor", "--json").json["notGranted"]
    assert entry == {"plugin": plugin, "service": "process", "message": lacks + add}, entry
    t.write("c.yaml", sandbox)
    checked = t.sf("--plugin-path", MINIMAL, "config", "check", "c.yaml", code=1)
    assert f"add to the configuration:  plugins: {{policies: {{{plugin}: {{{allow}}}}}}}" \
        in checked.text, checked
    # Granted, refused on purpose, or with all rights anyway.
    for policy in (allow, "allow: {process: false}", "isolation: inline"):
        t.write("c.yaml", "plugins:\n" + paths + f"  policies: {{{plugin}: {{{policy}}}}}\n" + sandbox)
        assert t.sf("config", "check", "c.yaml").text == "c.yaml: no mistakes found\n", policy
        assert "not granted" not in t.sf("--config", "c.yaml", "plugins", "doctor").text, policy


def test_the_other_services_that_need_a_grant(t):
    t.write("c.yaml", f"plugins: {{paths: [{UNRULY}]}}\nsandbox: {{provider: unruly}}\n")
    checked = t.sf("config", "check", "c.yaml", code=1)
    for service, line in (("process", "process: true"), ("http", "hosts: [HOST]"),
                          ("secrets", "secrets: [NAME]")):
        assert f"uses the host service {service} (" in checked.text, checked
        assert f"add below plugins:  policies: {{unruly: {{allow: {{{line}}}}}}}\n" in checked.text, \
            checked
    t.write("c.yaml", f"plugins:\n  paths: [{UNRULY}]\n  policies: {{unruly: {{allow: "
                      "{process: false, unixSockets: [/run/x], secrets: []}}}\n"
                      "sandbox: {provider: unruly}\n")
    t.sf("config", "check", "c.yaml")


def test_a_wrong_grant_hides_nothing_else(t):
    t.write("c.yaml", f"plugins:\n  paths: [{MINIMAL}]\n  policies:\n    example-minimal-c: "
                      "{allow: {proces: true, env: [A, 5]}}\n"
                      "sandbox:\n  provider: minimal-c\n  options: {rot: /tmp}\n"
                      "  settings: {size: 4}\n")
    checked = t.sf("config", "check", "c.yaml", code=1)
    found = [line.split(": ")[1] for line in checked.text.splitlines() if line.startswith("c.yaml:")]
    allow = "/plugins/policies/example-minimal-c/allow"
    assert found == [allow, allow + "/proces", allow + "/env/1", "/sandbox/options/rot",
                     "/sandbox/settings/size"], checked
    assert checked.err == b"", checked
    # A plugin of a pin that cannot be read is not run; it is not said to be absent either.
    t.write("c.yaml", f"plugins: {{paths: [{MINIMAL}], pins: {{minimal.so: 5}}}}\n"
                      "sandbox: {provider: minimal-c}\n")
    checked = t.sf("config", "check", "c.yaml", code=1)
    assert checked.error_text == ("sandforge: warning: the provider 'minimal-c' was not found: the "
                                  "mistakes under plugins come first\n"), checked


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


def test_a_process_of_a_plugin_ends_with_its_host(t):
    child = t.spawn("--plugin-path", UNRULY, "run", "--keep", "--session", "s", "--provider",
                    "unruly", "-i", "--shell", "wait", stdin=subprocess.PIPE)
    runners = wait_until(lambda: [pid for pid in processes.everybody()
                                  if processes.parent(pid) == child.pid and
                                  "sandforge-runner" in processes.command_line(pid)], "it runs")
    child.kill()
    child.communicate()
    wait_until(lambda: not any(map(processes.alive, runners)), "it ends, too")
    t.sf("--plugin-path", UNRULY, "rm", "-f", "s", code=None)


main(globals())
