"""Whatever is wrong in a configuration: config check says so, and nothing else happens."""

import copy
import json
import os

from support.case import BUILD
from support.main import main

GOOD_A = os.path.join(BUILD, "tests/unit/loader/fixtures/plugins/good_a/good_a.so")


def check(t, text, code):
    t.write("c.yaml", text)
    return t.sf("config", "check", "c.yaml", code=code)


def test_mistakes_in_a_conditional_env(t):
    for env in ("[A, B]", "[{}]", "[{when: always, vars: {A: b}}]", "[{set: [x]}]", "[{set: 5}]",
                "[{when: {factoryId: 5}, set: {A: b}}]", "5"):
        checked = check(t, f"sandbox: {{provider: local, options: {{env: {env}}}}}\n", 1)
        assert checked.err == b"", checked
        assert checked.text.startswith("c.yaml:1:"), checked
        assert " /sandbox/options/env" in checked.text, checked


def test_a_provider_of_an_endless_name(t):
    checked = check(t, "sandbox: {provider: " + "a" * 900_000 + "}\n", 1)
    assert checked.err == b"" and len(checked.out) < 1000, checked
    assert " /sandbox/provider: has 900000 characters" in checked.text, checked


def test_settings_are_checked_beside_mistakes_in_a_conditional_env(t):
    checked = check(t, "sandbox:\n  provider: local\n  options: {env: [{}]}\n"
                       "  settings: {size: 4}\n", 1)
    assert [line.split(": ")[1] for line in checked.text.splitlines()
            if line.startswith("c.yaml:")] == [
        "/sandbox/options/env/0", "/sandbox/settings/size"], checked


def test_a_relative_root_has_its_place_and_hides_nothing(t):
    text = "sandbox:\n  provider: local\n  options:\n    root: boxes\n  settings: {size: 4}\n"
    checked = check(t, text, 1)
    assert checked.err == b"" and [line for line in checked.text.splitlines()
                                   if line.startswith("c.yaml:")] == [
        "c.yaml:4:11: /sandbox/options/root: the root must be an absolute folder, \"boxes\" of the "
        "option root is none",
        "c.yaml:5:14: /sandbox/settings/size: unknown key \"size\""], checked


def test_a_relative_root_of_a_variable_is_told_as_such(t):
    t.env["SANDFORGE_LOCAL_ROOT"] = "boxes"
    checked = check(t, "sandbox: {provider: local}\n", 3)
    assert checked.error_text == (
        "sandforge: warning: c.yaml:1:10: the provider 'local' does not open: the root must be an "
        "absolute folder, \"boxes\" of the variable SANDFORGE_LOCAL_ROOT is none\n"), checked
    t.sf("run", "--provider", "local", "--", "true", code=125)


def test_what_is_not_checkable_here_hides_no_mistake(t):
    text = "sandbox:\n  provider: local\n  options: {env: {A: '${NOBODY_SET_IT}'}}\n"
    checked = check(t, text, 3)
    assert "the variable NOBODY_SET_IT is not set" in checked.error_text, checked
    checked = check(t, text + "  settings: {size: 4}\n", 1)
    assert "the variable NOBODY_SET_IT is not set" in checked.error_text, checked
    assert checked.text.startswith("c.yaml:4:14: /sandbox/settings/size: "), checked


def test_a_reference_inside_a_text_is_taken_literally(t):
    checked = check(t, "sandbox:\n  provider: local\n  options:\n    root: /x/${HOME}/y\n", 0)
    assert checked.error_text == (
        "sandforge: warning: c.yaml:4:11: /sandbox/options/root: \"${HOME}\" is taken literally: "
        "references are resolved in secrets and in env only\n"), checked
    assert check(t, "sandbox: {provider: local, options: {root: /x$y}}\n", 0).err == b""
    as_json = t.sf("config", "check", "--json", t.write(
        "d.yaml", "sandbox: {provider: local, options: {root: '/${HOME}/y', env: {A: 'x${HOME}'}}}"))
    assert len(as_json.json["warnings"]) == 1 and as_json.json["valid"] is True, as_json


def test_plugins_that_are_not_there_have_their_place(t):
    t.write("text.so", "no library\n")
    os.mkdir(t.path("empty"))
    text = "plugins:\n  paths:\n  - nowhere.so\n  - text.so\n  - gone/\nsandbox: {provider: local}\n"
    checked = check(t, text, 3)
    assert [line.split(": ")[2:4] for line in checked.error_text.splitlines()] == [
        ["c.yaml:3:5", "/plugins/paths/0"], ["c.yaml:4:5", "/plugins/paths/1"],
        ["c.yaml:5:5", "/plugins/paths/2"]], checked
    assert t.path("nowhere.so") + ": there is no such file" in checked.error_text, checked
    checked = check(t, f"plugins: {{paths: ['{GOOD_A}', empty]}}\n", 0)
    assert checked.error_text.endswith(f"/plugins/paths/1: {t.path('empty')}: has no plugins\n")


def nodes(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else \
        enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from nodes(item, (*path, name))


def mutations(document):
    """Each node replaced by one of another kind, or removed."""
    for path in nodes(document):
        for other in (None, 5, "text", [], [1, "a", None, {}], {"a": {"b": [1]}}, "removed"):
            if not path:
                if other != "removed":
                    yield path, other, other
                continue
            changed = copy.deepcopy(document)
            parent = changed
            for name in path[:-1]:
                parent = parent[name]
            if other == "removed":
                del parent[path[-1]]
            else:
                parent[path[-1]] = other
            yield path, other, changed


def test_each_node_of_a_full_configuration_replaced(t):
    document = {
        "plugins": {"paths": [GOOD_A],
                    "policies": {"good-a": {
                        "isolation": "inline", "allow": {"process": True, "env": ["A"]}}}},
        "sandbox": {"provider": "local", "wrap": "fault",
                    "faults": {"rules": [{"at": "start", "do": "delay", "ms": 5}]},
                    "options": {"root": t.root, "env": [
                        {"set": {"A": "x"}},
                        {"when": {"factoryId": ["f1"]}, "set": {"B": None}}]},
                    "settings": {}},
        "providers": {"fixture-good-a": {"settings": {"size": 5}}},
        "log": {"level": "info"},
    }
    good = check(t, json.dumps(document), 0)
    assert good.text == "c.yaml: no mistakes found\n", good
    codes = []
    for path, other, changed in mutations(document):
        t.write("c.yaml", json.dumps(changed))
        checked = t.sf("config", "check", "--json", "c.yaml", code=None)
        what = (path, other, checked)
        assert checked.code in (0, 1, 3), what
        assert "error" not in checked.json, what
        codes.append(checked.code)
        valid = {0: True, 1: False, 3: None}[checked.code]
        assert checked.json["valid"] is valid, what
        assert bool(checked.json["issues"]) == (checked.code == 1), what
        assert bool(checked.json["unchecked"]) or checked.code != 3, what
    assert codes.count(1) > 100, codes
    assert not os.path.exists(t.state) and not os.path.exists(t.root)


main(globals())
