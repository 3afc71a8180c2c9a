"""providers, describe, settings effective, config check, plugins doctor; where plugins come from."""

import hashlib
import os
import re
import subprocess

from support.case import BUILD, SANITIZED, Skipped
from support.main import main

FIXTURES = os.path.join(BUILD, "tests/unit/loader/fixtures/plugins")
LOCAL = os.path.join(BUILD, "lib/sandforge/plugins/local.so")
DOCKER = os.path.join(BUILD, "lib/sandforge/plugins/docker.so")

# The stage at which each broken plugin is refused.
BROKEN = {
    "no_manifest": "no_manifest", "bad_manifest": "manifest_invalid", "other_major": "abi_major",
    "other_services": "missing_dependency",
    "bad_schema": "schema_invalid", "code_major": "abi_major", "no_entry": "no_entry",
    "null_entry": "missing_member", "short_table": "missing_member", "null_open": "missing_member",
    "init_fails": "init_failed", "undefined_symbol": "undefined_symbol",
    "missing_dependency": "missing_dependency", "other_name": "provider_unusable",
    "bad_default": "schema_invalid", "bad_settings": "schema_invalid",
}


def fixture(name):
    return os.path.join(FIXTURES, name, name + ".so")


def test_plugins_doctor_reports_each_broken_plugin_once(t):
    t.write("plugins/text.so", "no library\n")
    t.write("plugins/empty.so", "")
    t.write("plugins/open.so", "no library\n", 0o666)
    t.write("plugins/README", "no candidate\n")
    os.symlink(t.path("gone"), t.path("plugins/dangling.so"))
    os.mkdir(t.path("plugins/folder.so"))
    words = []
    for path in [t.path("plugins"), t.path("nowhere.so"), fixture("good_a"),
                 fixture("twin_of_a")] + [fixture(name) for name in BROKEN]:
        words += ["--plugin-path", path]
    shown = t.sf(*words, "plugins", "doctor", "--json", code=1)
    report = shown.json
    stages = {os.path.basename(entry["path"]): entry["stage"] for entry in report["candidates"]}
    expected = {name + ".so": stage for name, stage in BROKEN.items()}
    expected.update({"text.so": "not_elf", "empty.so": "truncated", "open.so": "unsafe_permissions",
                     "dangling.so": "not_found", "folder.so": "not_regular",
                     "good_a.so": "loaded", "twin_of_a.so": "duplicate_provider",
                     "local.so": "loaded", "docker.so": "loaded"})
    seen = dict(stages)
    seen.pop("nowhere.so", None)
    assert seen == expected, {k: (seen.get(k), expected.get(k)) for k in {**seen, **expected}
                              if seen.get(k) != expected.get(k)}
    assert t.path("nowhere.so") in shown.text
    assert report["usable"] == 3 and report["refused"] == len(report["candidates"]) - 3, report
    for entry in report["candidates"]:
        assert entry["usable"] or (entry["message"] and entry["origin"] == "--plugin-path"), entry
    assert "sandforge_fixture_nobody_defines_this" in shown.text
    assert "libsandforge_fixture_gone.so" in shown.text
    assert "the fixture does not want to" in shown.text

    # For people: one paragraph for each, with the stage, the path and why.
    table = t.sf(*words, "plugins", "doctor", code=1)
    assert table.err == b"", table
    for entry in report["candidates"]:
        word = "loaded" if entry["usable"] else "refused"
        (paragraph,) = [part for part in table.text.split("\n\n")
                        if part.startswith(f"{word}: {entry['path']}\n")]
        assert entry["usable"] or (f"\n  stage: {entry['stage']}\n" in paragraph and
                                   f"\n  why: {entry['message']}\n" in paragraph), paragraph

    for name, what in (("other_name", "fixture-other-name"), ("bad_default", "size")):
        (paragraph,) = [part for part in table.text.split("\n\n") if f"/{name}.so\n" in part]
        why = [line for line in paragraph.splitlines() if line.startswith("  why: ")][0]
        assert what in why and "\n  hint: " in paragraph, paragraph

    # Nothing of this is in the way of the good ones.
    ran = t.sf(*words, "run", "--provider", "local", "--", "echo", "hi")
    assert ran.text == "hi\n" and ran.err == b"", ran
    listed = t.sf(*words, "providers")
    assert listed.error_text.startswith("sandforge: warning: ") and \
        listed.error_text.endswith(" plugins doctor\n"), listed
    assert f"plugins are not usable; see: sandforge --plugin-path {words[1]} " in \
        listed.error_text, listed
    assert len(listed.error_text.splitlines()) == 1


def test_where_plugins_come_from_and_who_wins(t):
    for name, where in (("good_a", "flag"), ("good_b", "list")):
        os.mkdir(t.path(where))
        with open(fixture(name), "rb") as file:
            t.write(f"{where}/{name}.so", file.read(), 0o755)
    with open(fixture("twin_of_a"), "rb") as file:
        t.write("configured/twin.so", file.read(), 0o755)
    t.write("c.yaml", "plugins: {paths: [configured, nowhere]}\n")
    env = {"SANDFORGE_PLUGIN_PATH": f"{t.path('list')}::/no/where"}
    listed = t.sf("--config", "c.yaml", "--plugin-path", "flag", "providers", "--json", env=env)
    origins = {entry["provider"]: (entry["origin"], entry["path"]) for entry in listed.json}
    assert origins == {
        "fixture-good-a": ("--plugin-path", t.path("flag/good_a.so")),
        "fixture-good-b": ("SANDFORGE_PLUGIN_PATH", t.path("list/good_b.so")),
        "docker": ("install folder", DOCKER), "local": ("install folder", LOCAL)}, origins
    listed = t.sf("--config", "c.yaml", "providers", "--json")
    origins = {entry["provider"]: entry["origin"] for entry in listed.json}
    assert origins == {"fixture-good-a": "configuration", "docker": "install folder",
                       "local": "install folder"}, origins
    doctor = t.sf("--config", "c.yaml", "--plugin-path", "flag", "plugins", "doctor", "--json",
                  code=1, env=env).json
    assert [(entry["path"], entry["stage"]) for entry in doctor["candidates"]
            if not entry["usable"]] == [
                (t.path("configured/twin.so"), "duplicate_provider"),
                (t.path("nowhere"), "not_found"), ("/no/where", "not_found")], doctor


def test_a_pinned_plugin(t):
    with open(fixture("good_a"), "rb") as file:
        text = file.read()
    t.write("plugins/a.so", text, 0o755)
    good = hashlib.sha256(text).hexdigest()
    for pin, code in ((good, 0), (good.upper(), 0), ("0" * 64, 1)):
        t.write("c.yaml", f"plugins:\n  paths: [plugins]\n  pins: {{a.so: '{pin}'}}\n")
        shown = t.sf("--config", "c.yaml", "plugins", "doctor", "--json", code=code)
        assert ("hash_mismatch" in shown.text) == (code == 1), shown


def test_a_pin_holds_wherever_the_plugin_is_found(t):
    with open(fixture("good_a"), "rb") as file:
        text = file.read()
    t.write("plugins/a.so", text, 0o755)
    doctor = ["--config", "c.yaml", "plugins", "doctor", "--json"]
    listed = {"SANDFORGE_PLUGIN_PATH": t.path("plugins")}
    good, bad = hashlib.sha256(text).hexdigest(), "0" * 64

    def stage(pin, digest, code, paths="[]", env=None, name="a.so"):
        t.write("c.yaml", f"plugins:\n  paths: {paths}\n  pins: {{{pin}: '{digest}'}}\n")
        report = t.sf(*doctor, code=code, env=env).json
        (entry,) = [e for e in report["candidates"] if os.path.basename(e["path"]) == name]
        return entry["stage"]

    for paths in ("[plugins]", "[plugins/]", "[plugins/a.so]"):  # pinned by a relative path
        assert stage("./plugins/a.so", good, 0, paths) == "loaded", paths
        assert stage("./plugins/a.so", bad, 1, paths) == "hash_mismatch", paths
    assert stage("a.so", good, 0, env=listed) == "loaded"
    assert stage("a.so", bad, 1, env=listed) == "hash_mismatch"
    assert stage("local.so", bad, 1, name="local.so") == "hash_mismatch"

    # A pin that fits nothing would leave its plugin unpinned.
    t.write("c.yaml", f"sandbox: {{provider: local}}\n"
                      f"plugins: {{paths: [plugins], pins: {{b.so: '{good}'}}}}\n")
    refused = t.sf("--config", "c.yaml", "run", "--", "true", code=125)
    assert refused.error_text == \
        "sandforge: the pin 'b.so' fits no plugin file that was found\n", refused
    check = t.sf("config", "check", "c.yaml", code=1)
    assert check.text.startswith("c.yaml:2:36: /plugins/pins/b.so: the pin 'b.so' fits no plugin "
                                 "file that was found\n"), check


def test_a_plugin_in_quarantine_is_shown_and_let_out(t):
    with open(fixture("good_a"), "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    t.write(f"state/quarantine/{digest}.json",
            '{"plugin": "good-a", "path": "/p/good_a.so", "reason": "it fell over", "at": 1}')
    words = ["--plugin-path", fixture("good_a")]
    shown = t.sf(*words, "plugins", "doctor", code=1)
    assert "\n  stage: quarantined\n  why: is in quarantine: it fell over\n" in shown.text, shown
    assert "\nin quarantine: good-a (/p/good_a.so): it fell over\n" in shown.text, shown
    refused = t.sf(*words, "describe", "fixture-good-a", code=125)
    assert "plugin good-a: is in quarantine: it fell over" in refused.error_text, refused
    # In line there is no process to lose.
    t.write("c.yaml", "plugins: {policies: {good-a: {isolation: inline}}}")
    inline = t.sf(*words, "--config", "c.yaml", "plugins", "doctor", "--json")
    assert {e["isolation"] for e in inline.json["candidates"]} == {"inline"}, inline
    cleared = t.sf(*words, "plugins", "doctor", "--clear-quarantine")
    assert "\n1 plugin let out of quarantine\n" in cleared.text, cleared
    assert "\n  runs: in a process of its own\n" in cleared.text, cleared
    assert os.listdir(t.path("state/quarantine")) == [], cleared
    assert t.sf(*words, "plugins", "doctor", "--json").json["quarantined"] == []


def test_settings_and_where_they_come_from(t):
    words = ["--plugin-path", fixture("good_a")]
    effective = ["settings", "effective", "fixture-good-a"]
    assert t.sf(*words, *effective, "--json").json == {
        "provider": "fixture-good-a", "settings": {"size": {"value": 4, "origin": "schema"}}}
    assert t.sf(*words, *effective).text == ("SETTING  VALUE  ORIGIN\n"
                                             "size     4      schema\n")
    t.write("c.yaml", "sandbox: {provider: fixture-good-a, settings: {size: 8}}\n")
    assert t.sf(*words, "--config", "c.yaml", *effective, "--json").json["settings"] == {
        "size": {"value": 8, "origin": "stored"}}
    t.write("bad.yaml", "sandbox: {provider: fixture-good-a, settings: {size: eight}}\n")
    refused = t.sf(*words, "--config", "bad.yaml", *effective, code=125)
    assert refused.error_text.startswith(
        f"sandforge: {t.dir}/bad.yaml:1:54: /sandbox/settings/size: expected integer"), refused
    assert t.sf(*effective[:2], "local").text == "No settings.\n"


def test_the_provider_of_the_configuration_needs_no_name(t):
    words = ["--plugin-path", fixture("good_a"), "--config"]
    t.write("c.yaml", "sandbox: {provider: fixture-good-a, settings: {size: 8}}\n")
    assert t.sf(*words, "c.yaml", "settings", "effective", "--json").json == {
        "provider": "fixture-good-a", "settings": {"size": {"value": 8, "origin": "stored"}}}
    assert t.sf(*words, "c.yaml", "describe").text.startswith("fixture-good-a\n")
    t.write("none.yaml", "log: {level: warn}\n")
    for command in (["describe"], ["settings", "effective"]):
        refused = t.sf(*words, "none.yaml", *command, code=125)
        assert "none.yaml has no sandbox.provider" in refused.error_text, refused


def test_describe(t):
    words = ["--plugin-path", fixture("good_a")]
    described = t.sf(*words, "describe", "fixture-good-a")
    assert described.text == ("fixture-good-a\nTemplates: no\nBuilds: no\nFeatures:\n"
                              "  spawn.stdin\nNo options.\n\nSETTING  TYPE     DEFAULT  ALLOWED  TITLE\n"
                              "size     integer  4        -        -\n"), described
    assert t.sf(*words, "describe", "fixture-good-a", "--json").json["answer"] == 42
    rows = [row.split(None, 3) for row in t.sf("describe", "local").text.splitlines()]
    head = rows.index(["OPTION", "TYPE", "DEFAULT", "DESCRIPTION"])
    assert rows[head + 1][:3] == ["root", "string", "-"], rows
    assert rows[head + 1][3].startswith("Root: Absolute folder under which each session gets"), rows
    assert rows[head + 3][:3] == ["guestSilenceMs", "integer", "10000"], rows
    bad = t.sf("--plugin-path", fixture("bad_settings"), "describe", "fixture-bad-settings",
               code=125)
    assert "the settings schema of provider fixture-bad-settings is not valid" in bad.error_text, bad


def test_config_check_finds_all_mistakes_at_once(t):
    t.write("c.yaml", f"""\
plugins: {{paths: [{fixture('good_a')}, {fixture('good_b')}]}}
sandbox:
  provider: local
  options:
    rot: /tmp
    env: {{A: 1}}
  settings:
    size: 4
providers:
  fixture-good-a: {{settings: {{size: four, colour: red}}}}
  fixture-good-b: {{options: {{x: 1}}, settings: {{size: 1.5}}}}
provdiers: {{}}
log: {{level: loud}}
""")
    checked = t.sf("config", "check", "c.yaml", code=1)
    places = [line.split(": ")[:2] for line in checked.text.splitlines()
              if line.startswith("c.yaml:")]
    assert [tuple(place) for place in places] == [
        ("c.yaml:5:5", "/sandbox/options/rot"),
        ("c.yaml:6:14", "/sandbox/options/env/A"),
        ("c.yaml:8:5", "/sandbox/settings/size"),
        ("c.yaml:10:37", "/providers/fixture-good-a/settings/size"),
        ("c.yaml:10:43", "/providers/fixture-good-a/settings/colour"),
        ("c.yaml:11:30", "/providers/fixture-good-b/options/x"),
        ("c.yaml:11:54", "/providers/fixture-good-b/settings/size"),
        ("c.yaml:12:1", "/provdiers"),
        ("c.yaml:13:14", "/log/level"),
    ], checked
    as_json = t.sf("config", "check", "--json", "c.yaml", code=1).json
    assert [(issue["line"], issue["pointer"]) for issue in as_json["issues"]] == [
        (int(place.split(":")[1]), pointer) for place, pointer in places], as_json
    assert not os.path.exists(t.state) and not os.path.exists(t.root)


def test_config_check_uses_the_plugins_of_the_file(t):
    t.write("c.yaml", f"plugins: {{paths: [{fixture('good_a')}]}}\n"
            "sandbox: {provider: fixture-good-a, settings: {size: 5}}\n")
    assert t.sf("config", "check", "c.yaml").text == "c.yaml: no mistakes found\n"
    t.write("shapes.yaml", "sandbox: {options: 3}\nproviders: [1]\nplugins: x\n")
    shown = t.sf("config", "check", "shapes.yaml", code=1)
    for pointer in ("/sandbox", "/sandbox/options", "/providers", "/plugins"):
        assert f" {pointer}: " in shown.text, (pointer, shown)


def test_a_session_finds_the_plugin_of_its_configuration_again(t):
    with open(LOCAL, "rb") as file:
        os.mkdir(t.path("plugins"))
        t.write("plugins/local.so", file.read(), 0o755)
    os.symlink(os.path.join(os.path.dirname(LOCAL), "sandforge-guest"),
               t.path("plugins/sandforge-guest"))
    # A program that has no plugin of its own: what the configuration names is all there is.
    os.makedirs(t.path("bare/bin"))
    with open(t.program, "rb") as file:
        bare = t.write("bare/bin/sandforge", file.read(), 0o755)
    policy = "policies: {sandforge-local: {isolation: inline}}"
    t.write("c.yaml", f"plugins: {{paths: [plugins], {policy}}}\n"
            f"sandbox: {{provider: local, options: {{root: {t.root}}}}}\n")

    def run(*words):
        return subprocess.run([bare, *words], env=t.env, cwd=t.dir, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=120)
    assert b"no provider local" in run("start", "--provider", "local").stderr
    t.write("isolated.yaml", "plugins: {paths: [plugins]}\nsandbox: {provider: local}\n")
    refused = run("--config", "isolated.yaml", "start")
    assert refused.returncode == 125 and b"install sandforge-runner beside" in refused.stderr, refused
    started = run("--config", "c.yaml", "start", "--session", "s")
    assert started.stdout == b"s\n", started
    ran = run("exec", "s", "--", "echo", "hi")
    assert ran.stdout == b"hi\n", ran
    removed = run("rm", "s")
    assert removed.stdout == b"s\n", removed


def test_a_configuration_says_where_sessions_are_kept(t):
    t.write("c.yaml", "session: {store: mine/sessions.db}\n"
            f"sandbox: {{provider: local, options: {{root: {t.path('mine/root')}}}}}\n")
    t.sf("--config", "c.yaml", "start", "--session", "s")
    assert t.sessions() == [] and os.path.exists(t.path("mine/sessions.db"))
    assert t.sf("--config", "c.yaml", "exec", "s", "--", "pwd").text == t.path("mine/root/s") + "\n"
    t.sf("--config", "c.yaml", "rm", "s")
    assert not os.path.exists(t.root)


def test_log_levels(t):
    session = t.session()
    for level in ("debug", "info", "warn", "error", "off"):
        ran = t.sf("--log-level", level, "exec", session, "--", "echo", "hi")
        assert ran.text == "hi\n", ran
    t.write("c.yaml", "log: {level: debug, format: json}\n")
    ran = t.sf("--config", "c.yaml", "exec", session, "--", "echo", "hi")
    assert ran.text == "hi\n", ran


def test_a_list_of_providers_does_nothing_but_read(t):
    """What makes it quick: no database, no process, no code of a plugin."""
    if subprocess.run(["sh", "-c", "command -v strace"], capture_output=True).returncode != 0:
        raise Skipped("strace is not installed")
    if SANITIZED:
        raise Skipped("the leak sanitizer does not work below strace")
    if os.geteuid() != 0:
        raise Skipped("the program's memory, and with it the names of files, is root's to read")
    trace = t.path("trace")
    t.sf("providers", through=["strace", "-f", "-o", trace, "-e",
                               "trace=execve,vfork,fork,openat,connect,mkdir,unlink,mmap"])
    text = t.read("trace").decode(errors="replace")
    if "PTRACE" in text or not text:
        raise Skipped("strace is not allowed here")
    assert len(re.findall(r"execve\(", text)) == 1, text
    assert "sessions.db" not in text and "sandforge-guest" not in text
    assert not re.search(r"\b(vfork|fork|connect|mkdir|unlink)\(", text), text
    assert os.listdir(t.dir).count("state") == 0
    opened = re.findall(r'openat\([^"]*"([^"]*\.so)"[^)]*\)\s*= (\d+)', text)
    assert [path for path, _ in opened] == [DOCKER, LOCAL], opened
    descriptor = opened[1][1]
    after = text[text.index(LOCAL + '"'):]
    assert not re.search(rf"mmap\([^)]*PROT_EXEC[^)]*, {descriptor}, ", after), after


main(globals())
