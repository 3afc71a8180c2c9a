"""Which provider is used when none is named: the rule of the factory document, as data."""

import os

from support import strict_json
from support.case import SOURCE
from support.main import main

NONE = ("sandforge: no sandbox provider: {}\n"
        "  hint: name one with --provider, or in a configuration file that --config names\n")
NOTHING_SET = NONE.format("no provider is named, and no platform credentials are set")
TOKEN = {"MASTRA_PLATFORM_ACCESS_TOKEN": "tok-1234567890"}
KEY = {"MASTRA_PLATFORM_SECRET_KEY": "key-1234567890"}
IDS = {"MASTRA_PROJECT_ID": "p", "MASTRA_ENVIRONMENT_ID": "e"}
OFF = "sandforge: warning: sandboxes are off: platform credentials are set, but "


def provider_of(t, *words, env):
    ran = t.sf("run", "--json", *words, "--keep", "--", "true", env=env)
    session = ran.json["session"]
    (record,) = t.sf("ps", "--json").json
    assert record["id"] == session
    t.sf("rm", session)
    return record["provider"]


def test_nothing_at_all_is_off(t):
    for env in ({}, {"NODE_ENV": "development"}, {"SANDFORGE_ENV": "development"}, IDS,
                {"MASTRA_PLATFORM_ACCESS_TOKEN": ""}, {"MASTRA_PLATFORM_SECRET_KEY": "  "}):
        for command in (["run", "--", "true"], ["start"]):
            for dev in ([], ["--dev"]):
                refused = t.sf(*dev, *command, code=125, env=env)
                assert refused.error_text == NOTHING_SET and refused.out == b"", refused
    assert not os.path.exists(t.root)


def test_credentials_in_development_are_local(t):
    for credentials in (TOKEN, KEY):
        for env in ({"NODE_ENV": "development"}, {"SANDFORGE_ENV": "development"}):
            assert provider_of(t, env={**credentials, **env}) == "local"
        assert provider_of(t, "--dev", env=credentials) == "local"
        assert provider_of(t, "--dev", env={**credentials, **IDS}) == "local"


def test_credentials_of_a_deployment_need_the_ids(t):
    for env, missing in ((TOKEN, "MASTRA_PROJECT_ID and MASTRA_ENVIRONMENT_ID"),
                         ({**KEY, "MASTRA_PROJECT_ID": "p"}, "MASTRA_ENVIRONMENT_ID"),
                         ({**KEY, "MASTRA_ENVIRONMENT_ID": "e"}, "MASTRA_PROJECT_ID"),
                         ({**TOKEN, **IDS, "MASTRA_PROJECT_ID": " "}, "MASTRA_PROJECT_ID"),
                         ({**TOKEN, "NODE_ENV": "production"},
                          "MASTRA_PROJECT_ID and MASTRA_ENVIRONMENT_ID")):
        refused = t.sf("start", code=125, env=env)
        assert refused.error_text == (
            OFF + f"provider 'platform' needs {missing} as well\n" +
            NONE.format("platform credentials are set")), refused


def test_a_platform_whose_plugin_is_missing_is_off(t):
    refused = t.sf("start", code=125, env={**TOKEN, **IDS})
    assert refused.error_text == (
        OFF + "the plugin of provider 'platform' is not installed\n" +
        NONE.format("platform credentials are set")), refused
    shown = t.sf("--json", "start", code=125, env={**TOKEN, **IDS})
    assert shown.json["error"]["reason"] == "cli.no_provider", shown
    for result in (refused, shown):
        assert b"tok-" not in result.out + result.err, result


def test_what_is_named_wins(t):
    everything = {**TOKEN, **KEY, **IDS}
    assert provider_of(t, "--provider", "local", env=everything) == "local"
    t.write("c.yaml", "sandbox: {provider: local}\n")
    assert provider_of(t, "--config", t.path("c.yaml"), env=everything) == "local"
    assert provider_of(t, "--config", t.path("c.yaml"), env={}) == "local"
    # The command line above the configuration, and no way around what it names.
    t.write("other.yaml", "sandbox: {provider: platform}\n")
    assert provider_of(t, "--config", t.path("other.yaml"), "--provider", "local", env={}) == "local"
    for words in (["--dev", "start", "--provider", "platform"],
                  ["--dev", "--config", t.path("other.yaml"), "start"]):
        refused = t.sf(*words, code=125, env=everything)
        assert refused.error_text.startswith("sandforge: there is no provider platform\n"), refused


def test_the_rule_is_the_data_of_the_source_tree(t):
    with open(os.path.join(SOURCE, "hosts/default-sandbox.json"), "rb") as file:
        table = strict_json.parse(file.read())
    assert table["development"] == {"SANDFORGE_ENV": "development", "NODE_ENV": "development"}
    credentials = ["MASTRA_PLATFORM_ACCESS_TOKEN", "MASTRA_PLATFORM_SECRET_KEY"]
    assert [(rule["anyOf"], rule.get("development"), rule["provider"], rule.get("needs"))
            for rule in table["rules"]] == [
                (credentials, True, "local", None),
                (credentials, None, "platform", ["MASTRA_PROJECT_ID", "MASTRA_ENVIRONMENT_ID"])]


main(globals())
