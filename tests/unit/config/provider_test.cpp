// Options and settings of providers, references, and the environment of sessions.
#include <fstream>

#include "helpers.hpp"
#include "sandforge/host_config.hpp"
#include "support/temp_dir.hpp"

using namespace config_test;
using sandforge::check_provider;
using sandforge::resolve_reference;

namespace {

std::string check(const std::string& text) {
  const auto config = good(text);
  const auto issues =
      check_provider(*config, *config->sandbox, *options_schema(), settings_schema().get());
  return issues.empty() ? "ok" : format_config_issues(*config, issues);
}

const std::string kHead = "sandbox:\n  provider: p\n  options:\n";

std::string resolved(const std::string& text, const sandforge::ReferenceSource& from) {
  const auto config = good(text);
  const auto result = resolve_options(*config, *config->sandbox, *options_schema(), from);
  if (!result.issues.empty()) return format_config_issues(*config, result.issues);
  return sandforge::json::write(result.options);
}

std::string for_removal(const std::string& text, const sandforge::ReferenceSource& from) {
  const auto config = good(text);
  const auto result = resolve_options(*config, *config->sandbox, *options_schema(), from,
                                      sandforge::Unresolved::left_out);
  if (!result.issues.empty()) return format_config_issues(*config, result.issues);
  return sandforge::json::write(result.options);
}

std::string text_of(const std::string& text, const sandforge::ReferenceSource& from) {
  const auto result = resolve_reference(text, "/etc/sandforge", from);
  return result.error.empty() ? result.text : "error: " + result.error;
}

}  // namespace

TEST_CASE("Options and settings are checked by the provider's schemas",
          "[config][cases.F01][cases.F02][cases.F11]") {
  CHECK(check("sandbox: {provider: p}\n") == "ok");
  CHECK(check(kHead + "    endpoint: https://a.b\n    port: 80\n  settings: {cpuCount: 4}\n") ==
        "ok");
  CHECK(check(kHead + "    endpont: https://a.b\n"
                      "    port: 70000\n"
                      "    registry:\n"
                      "      user: 5\n"
                      "    defaults: {cpuCount: 0}\n"
                      "  settings:\n"
                      "    cpuCuont: 4\n"
                      "    region: en\n") ==
        "c.yaml:4:5: /sandbox/options/endpont: unknown key \"endpont\" (allowed: endpoint, apiKey, "
        "port, defaults, template, registry, env); did you mean \"endpoint\"?\n"
        "c.yaml:5:11: /sandbox/options/port: 70000 is greater than the maximum 65535 (allowed: "
        "integer from 1 to 65535)\n"
        "      port: 70000\n"
        "            ^\n"
        "c.yaml:7:13: /sandbox/options/registry/user: expected string, got integer; put it in "
        "quotes: \"5\"\n"
        "        user: 5\n"
        "              ^\n"
        "c.yaml:8:26: /sandbox/options/defaults/cpuCount: 0 is less than the minimum 1 (allowed: "
        "integer at least 1)\n"
        "      defaults: {cpuCount: 0}\n"
        "                           ^\n"
        "c.yaml:10:5: /sandbox/settings/cpuCuont: unknown key \"cpuCuont\" (allowed: cpuCount, "
        "region); did you mean \"cpuCount\"?\n"
        "      cpuCuont: 4\n"
        "      ^\n"
        "c.yaml:11:13: /sandbox/settings/region: \"en\" is not allowed (allowed: us, eu); did you "
        "mean \"eu\"?\n"
        "      region: en\n"
        "              ^\n");
}

TEST_CASE("Without a settings schema only options are checked", "[config]") {
  const auto config =
      good("sandbox: {provider: p, settings: {x: 1}, options: {defaults: {y: 1}}}\n");
  CHECK(check_provider(*config, *config->sandbox, *options_schema()).empty());
}

TEST_CASE("Secrets show neither value nor line", "[config]") {
  const std::string text = check(kHead + "    apiKey: HUNTER2\n    port: 0\n");
  CHECK(text ==
        "c.yaml:4:13: /sandbox/options/apiKey: needs at least 8 characters\n"
        "c.yaml:4:13: /sandbox/options/apiKey: the value does not match the pattern "
        "\"^[a-z0-9]+$\"\n"
        "c.yaml:5:11: /sandbox/options/port: 0 is less than the minimum 1 (allowed: integer from 1 "
        "to 65535)\n"
        "      port: 0\n"
        "            ^\n");
  CHECK(check("sandbox: {provider: p, options: {apiKey: hunter22, port: 0}}\n") ==
        "c.yaml:1:58: /sandbox/options/port: 0 is less than the minimum 1 (allowed: integer from 1 "
        "to 65535)\n");
}

TEST_CASE("References are not looked at before they are resolved", "[config]") {
  CHECK(check(kHead + "    apiKey: ${KEY}\n    registry: {password: 'file:pw'}\n") == "ok");
  CHECK(
      check(kHead + "    endpoint: ${ENDPOINT}\n") ==
      "c.yaml:4:15: /sandbox/options/endpoint: \"${ENDPOINT}\" is not a URI with a scheme, such as "
      "https://example.com/path\n"
      "      endpoint: ${ENDPOINT}\n"
      "                ^\n"
      "c.yaml:4:15: /sandbox/options/endpoint: references are resolved in secrets and in env "
      "only\n");
}

TEST_CASE("Conditional variables are checked one by one", "[config]") {
  CHECK(check(kHead + "    env: {A: '${X}', B: null}\n") == "ok");
  CHECK(check(kHead + "    env:\n      - set: {A: '${X}', B: null}\n      - set: {}\n") == "ok");
  const auto strict = schema(R"({"type":"object","additionalProperties":false,"required":["port"],
      "properties":{"port":{"type":"integer"},
        "env":{"type":"object","additionalProperties":{"type":"string","maxLength":3}}}})",
                             sandforge::SchemaProfile::options);
  const auto config =
      good(kHead + "    env:\n      - set: {A: long, B: x}\n      - set: {C: longer}\n");
  CHECK(format_config_issues(*config, check_provider(*config, *config->sandbox, *strict)) ==
        "c.yaml:4:5: /sandbox/options: \"port\" is missing (allowed: integer)\n"
        "      env:\n"
        "      ^\n"
        "c.yaml:5:18: /sandbox/options/env/0/set/A: has 4 characters, at most 3 are allowed\n"
        "c.yaml:6:18: /sandbox/options/env/1/set/C: has 6 characters, at most 3 are allowed\n");
  const auto none = schema(R"({"type":"object","additionalProperties":false})",
                           sandforge::SchemaProfile::options);
  CHECK(format_config_issues(*config, check_provider(*config, *config->sandbox, *none)) ==
        "c.yaml:4:5: /sandbox/options/env: unknown key \"env\"\n");
}

TEST_CASE("A reference is a variable or a file", "[references]") {
  const auto from =
      source({{"A", "x"}, {"EMPTY", ""}}, {{"/etc/sandforge/key", "k"}, {"/abs", "a"}});
  CHECK(text_of("plain", from) == "plain");
  CHECK(text_of("${A}", from) == "x");
  CHECK(text_of("<${A}-${A}>", from) == "<x-x>");
  CHECK(text_of("${EMPTY}", from).empty());
  CHECK(text_of("$A $ $$", from) == "$A $ $$");
  CHECK(text_of("$${A}", from) == "${A}");
  CHECK(text_of("$${A}${A}", from) == "${A}x");
  CHECK(text_of("file:key", from) == "k");
  CHECK(text_of("file:/abs", from) == "a");
  CHECK(text_of("$file:key", from) == "file:key");
  CHECK(text_of("$$file:key", from) == "$file:key");
  CHECK(text_of("a file:key", from) == "a file:key");
  CHECK(text_of("${NONE}", from) == "error: the variable NONE is not set");
  CHECK(
      text_of("file:none", from) ==
      "error: the file /etc/sandforge/none cannot be read: No such file or directory; write $file: "
      "if the text itself is meant");
  CHECK(text_of("file:", from) == "error: the reference \"file:\" names no file");
  const std::string broken =
      "error: \"${\" is not followed by the name of a variable and \"}\"; write $${ for the text";
  CHECK(text_of("${", from) == broken);
  CHECK(text_of("${}", from) == broken);
  CHECK(text_of("${1X}", from) == broken);
  CHECK(text_of("${A B}", from) == broken);
  CHECK(text_of("${A", from) == broken);
}

TEST_CASE("A value that looks like a reference is not resolved again", "[references]") {
  const auto from =
      source({{"A", "${B}"}, {"B", "deep"}, {"F", "file:key"}}, {{"/etc/sandforge/key", "${A}"}});
  CHECK(text_of("${A}", from) == "${B}");
  CHECK(text_of("${F}", from) == "file:key");
  CHECK(text_of("file:key", from) == "${A}");
}

TEST_CASE("Options are resolved late, and checked again", "[references]") {
  const auto from = source({{"KEY", "abcdefgh1"}, {"T", "v"}, {"BAD", "HUNTER2"}},
                           {{"/etc/sandforge/pw", "secret"}});
  const std::string text = kHead +
                           "    endpoint: https://a.b\n"
                           "    apiKey: ${KEY}\n"
                           "    registry: {user: '$${x', password: 'file:pw'}\n"
                           "    env: {TOKEN: '${T}', PLAIN: x, OFF: null}\n";
  CHECK(
      resolved(text, from) ==
      R"({"endpoint":"https://a.b","apiKey":"abcdefgh1","registry":{"user":"$${x","password":"secret"},)"
      R"("env":{"TOKEN":"v","PLAIN":"x","OFF":null}})");
  const auto config = good(text);
  CHECK(sandforge::json::write(config->sandbox->options).find("abcdefgh1") == std::string::npos);

  CHECK(resolved(kHead + "    apiKey: ${NONE}\n    registry: {password: 'file:none'}\n", from) ==
        "c.yaml:4:13: /sandbox/options/apiKey: the variable NONE is not set\n"
        "c.yaml:5:26: /sandbox/options/registry/password: the file /etc/sandforge/none cannot be "
        "read: No such file or directory; write $file: if the text itself is meant\n");
  CHECK(resolved(kHead + "    apiKey: ${BAD}\n", from) ==
        "c.yaml:4:13: /sandbox/options/apiKey: needs at least 8 characters\n"
        "c.yaml:4:13: /sandbox/options/apiKey: the value does not match the pattern "
        "\"^[a-z0-9]+$\"\n");
  CHECK(resolved(kHead + "    env:\n      - set: {A: x}\n", from) == "{}");
  CHECK(resolved("sandbox: {provider: p}\n", from) == "{}");
}

TEST_CASE("The environment of a session depends on its factory", "[references]") {
  const auto config = good(kHead +
                           "    env:\n"
                           "      - set: {A: all, B: '${B}'}\n"
                           "      - when: {factoryId: f1}\n"
                           "        set: {A: one, C: null}\n"
                           "      - when: {factoryId: [f1, f2]}\n"
                           "        set: {D: '${NONE}'}\n");
  const auto env = [&](std::optional<std::string_view> id) {
    return sandforge::json::write(session_env(*config, *config->sandbox, id).env);
  };
  CHECK(env(std::nullopt) == R"({"A":"all","B":"${B}"})");
  CHECK(env("f0") == R"({"A":"all","B":"${B}"})");
  CHECK(env("f1") == R"({"A":"one","B":"${B}","C":null,"D":"${NONE}"})");
  CHECK(env("f2") == R"({"A":"all","B":"${B}","D":"${NONE}"})");
  CHECK(session_env(*config, *config->sandbox, "f2").names ==
        std::vector<std::string>{"A", "B", "D"});

  const auto from = source({{"B", "bee"}});
  const auto plain = resolved_session_env(*config, *config->sandbox, "f0", from);
  CHECK(sandforge::json::write(plain.env) == R"({"A":"all","B":"bee"})");
  CHECK(plain.issues.empty());
  const auto missing = resolved_session_env(*config, *config->sandbox, "f1", from);
  CHECK(format_config_issues(*config, missing.issues) ==
        "c.yaml:9:18: /sandbox/options/env/2/set/D: the variable NONE is not set\n");
  SECTION("a record holds for everybody") {
    const auto record = good(kHead + "    env: {A: x}\n");
    CHECK(sandforge::json::write(session_env(*record, *record->sandbox, "f1").env) ==
          R"({"A":"x"})");
    const auto none = good("sandbox: {provider: p}\n");
    CHECK(sandforge::json::write(session_env(*none, *none->sandbox, "f1").env) == "{}");
  }
}

TEST_CASE("The host's own references", "[references]") {
  const auto from = sandforge::host_references();
  const sandforge::test::TempDir temp;
  const std::filesystem::path& directory = temp.path();
  const auto value = [&](const std::string& content) {
    std::ofstream(directory / "f", std::ios::binary) << content;
    const auto result = resolve_reference("file:f", directory, from);
    return result.error.empty() ? result.text : "error: " + result.error;
  };
  const std::string failed = "error: the file " + (directory / "f").string() + " cannot be read: ";
  const std::string hint = "; write $file: if the text itself is meant";
  CHECK(value("secret\n") == "secret");
  CHECK(value("secret\r\n") == "secret");
  CHECK(value("two\n\n") == "two\n");
  CHECK(value("").empty());
  CHECK(value(std::string("a\0b", 3)) == failed + "contains NUL" + hint);
  CHECK(value(std::string(65537, 'x')) == failed + "larger than 64 KiB" + hint);
  CHECK(value(std::string(65536, 'x')).size() == 65536);
  CHECK(text_of("file:" + directory.native(), from) ==
        "error: the file " + directory.native() + " cannot be read: not a regular file" + hint);
  CHECK(text_of("${SANDFORGE_SURELY_NOT_SET}", from) ==
        "error: the variable SANDFORGE_SURELY_NOT_SET is not set");
  CHECK_FALSE(text_of("${PATH}", from).empty());
}

TEST_CASE("For a removal, members whose references lead nowhere are left out", "[config]") {
  sandforge::ReferenceSource from;
  from.variable = [](const std::string& name) -> std::optional<std::string> {
    if (name == "SET") return "value";
    return std::nullopt;
  };
  from.file = [](const std::filesystem::path&, std::string& error) -> std::optional<std::string> {
    error = "no such file";
    return std::nullopt;
  };
  const std::string text = kHead +
                           "    endpoint: https://a.b\n    apiKey: ${UNSET}\n"
                           "    env: {A: '${SET}', B: '${UNSET}', C: 'file:gone', D: plain}\n";
  CHECK(for_removal(text, from) == R"({"endpoint":"https://a.b","env":{"A":"value","D":"plain"}})");
  CHECK(resolved(text, from).find("UNSET") != std::string::npos);
}
