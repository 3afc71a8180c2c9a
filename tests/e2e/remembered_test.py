"""A session remembers the configuration that it was made with, which may be gone by now."""

import os
import re
import signal

from support.case import wait_until
from support.main import main

CONFIG = "sandbox:\n  provider: local\n  options: {env: {A: one}}\n"
HINT = ("\n  hint: the session 's' remembers this configuration; --config names another one instead, "
        "and rm -f forgets the session and leaves its machine\n")


def refused_everywhere(t, *words_of_it):
    for words in (["ps", "s"], ["stop", "s"], ["rm", "s"], ["exec", "s", "--", "true"],
                  ["run", "--session", "s", "--", "true"], ["start", "--session", "s"]):
        shown = t.sf(*words, code=125)
        assert shown.out == b"", shown
        assert shown.error_text.endswith(HINT), shown
        told = shown.error_text[:-len(HINT)]
        assert told.startswith("sandforge: " + t.path("c.yaml") + ":"), shown
        assert all(word in told for word in words_of_it), shown
    details = t.sf("ps", "--json", "s", code=125).json["error"]["details"]
    assert (details["file"], details["session"]) == (t.path("c.yaml"), "s"), details
    # The list needs no configuration.
    assert t.sessions() == ["s"]
    assert t.sf("ps").text.splitlines()[1].split()[0] == "s"


def test_a_configuration_that_is_gone(t):
    t.sf("start", "--config", t.write("c.yaml", CONFIG), "--session", "s")
    os.unlink(t.path("c.yaml"))
    refused_everywhere(t, "the configuration cannot be read: No such file or directory")
    other = t.write("other.yaml", CONFIG)
    assert t.sf("--config", other, "exec", "s", "--", "echo", "hi").text == "hi\n"
    t.sf("--config", other, "rm", "s")
    assert t.no_guest()
    # A mistake of what the caller named himself needs no such word.
    shown = t.sf("--config", t.path("c.yaml"), "ps", "s", code=125)
    assert "remembers" not in shown.error_text, shown


def test_what_is_forgotten_by_force_is_named_with_what_ends_it(t):
    t.sf("start", "--config", t.write("c.yaml", CONFIG), "--session", "s")
    folder = t.sf("exec", "s", "--", "pwd").text.strip()
    os.unlink(t.path("c.yaml"))
    shown = t.sf("rm", "-f", "s")
    told = shown.error_text
    assert "the machine of 's' may be left behind: " in told, shown
    assert "its provider is 'local', which knows it as " + folder in told, shown
    found = re.search(r"processes here that belong to it: (\d+) \(sandforge-guest\);", told)
    assert found, shown
    assert t.sessions() == []
    os.kill(int(found[1]), signal.SIGTERM)
    wait_until(t.no_guest, "the end of the guest")


def test_a_configuration_that_is_broken(t):
    t.sf("start", "--config", t.write("c.yaml", CONFIG), "--session", "s")
    t.write("c.yaml", CONFIG.replace("env", "evn"))
    refused_everywhere(t, ":3:13: /sandbox/options/evn: unknown key \"evn\"",
                       "did you mean \"env\"?")
    t.write("c.yaml", CONFIG)
    t.sf("rm", "s")


main(globals())
