// F01, F02, F04, F06, F10, F11: configuration files and schemas, as core reads them.
#include <map>

#include "default_sandbox.hpp"
#include "procedure.hpp"
#include "sandforge/host_config.hpp"

namespace sandforge::conformance {
namespace {

CompiledSchemaPtr schema_of(const char* text, SchemaProfile profile) {
  auto compiled = compile_schema_text(text, profile);
  const Note note("issues: " + format_issues(compiled.issues));
  REQUIRE((compiled.schema != nullptr));
  return compiled.schema;
}

// What is wrong with a provider's options and settings, as text.
std::string mistakes(const std::string& yaml) {
  static const auto options = schema_of(R"({"type":"object","additionalProperties":false,
    "properties":{"port":{"type":"integer","minimum":1,"maximum":65535},
      "endpoint":{"type":"string"},"apiKey":{"type":"string","x-secret":true},
      "defaults":{"type":"object","additionalProperties":{"type":["integer","null"]}}}})",
                                        SchemaProfile::options);
  static const auto settings = schema_of(R"({"type":"object","additionalProperties":false,
    "properties":{"cpuCount":{"type":"integer","minimum":1,"default":2},
      "region":{"type":"string","enum":["us","eu"]}}})",
                                         SchemaProfile::settings);
  const auto read = parse_host_config(yaml, "c.yaml", "/etc/sandforge");
  if (!read) return read.report;
  std::vector<ConfigIssue> all;
  const auto look = [&](const ProviderConfig& provider) {
    for (auto& issue : check_provider(*read.config, provider, *options, settings.get()))
      all.push_back(std::move(issue));
  };
  if (read.config->sandbox) look(*read.config->sandbox);
  for (const auto& [name, provider] : read.config->providers)
    look(provider);
  return format_config_issues(*read.config, all);
}

bool says(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    if (text.find(part) == std::string::npos) {
      findings().add(std::string("does not say ") + show_text(part) + ": " + show_text(text));
      return false;
    }
  return true;
}

void typing_mistake(Host&) {
  says(mistakes("sandbox:\n  provider: p\n  settings:\n    cpuCuont: 4\n"),
       {"c.yaml:4:5:", "/sandbox/settings/cpuCuont", "did you mean \"cpuCount\"?"});
}

void all_at_once(Host&) {
  says(mistakes("sandbox:\n  provider: p\n  options: {port: 70000}\n"
                "  settings: {cpuCount: 0, region: en}\n"
                "providers:\n  q:\n    options: {endpoint: 5}\n    settings: {cpuCount: two}\n"),
       {"/sandbox/options/port: 70000", "/sandbox/settings/cpuCount: 0",
        "/sandbox/settings/region: \"en\"", "/providers/q/options/endpoint",
        "/providers/q/settings/cpuCount"});
  says(mistakes("pluginz: {}\nplugins: {paths: /opt}\nlog: {level: verbose}\n"),
       {"c.yaml:1:1: /pluginz", "did you mean \"plugins\"?", "/plugins/paths", "/log/level"});
}

void options(Host&) {
  says(mistakes("sandbox: {provider: p, options: {noSuch: 1}}\n"), {"/sandbox/options/noSuch"});
  says(mistakes("sandbox:\n  provider: p\n  options:\n    id: x\n    sandboxId: y\n"),
       {"c.yaml:4:5: /sandbox/options/id", "c.yaml:5:5: /sandbox/options/sandboxId",
        "set for each session"});
  says(mistakes("sandbox: {provider: p, options: {defaults: {cpuCount: 0}}}\n"),
       {"/sandbox/options/defaults/cpuCount"});
  says(mistakes("sandbox: {provider: p, settings: {apiKey: secret-value}}\n"),
       {"/sandbox/settings/apiKey"});
  CHECK(mistakes("sandbox: {provider: p, settings: {apiKey: secret-value}}\n")
            .find("secret-value\"") == std::string::npos);
}

// ---- F04

std::string refusal(const std::string& field) {
  const auto result = compile_schema_text(
      R"({"type":"object","additionalProperties":false,"properties":{"a":)" + field + "}}",
      SchemaProfile::settings);
  return result ? "accepted" : format_issues(result.issues);
}

void schemas(Host&) {
  says(refusal(R"({"type":"string","additionalProperties":false})"),
       {"/properties/a/additionalProperties"});
  says(refusal(R"({"type":"integer","minimun":1})"),
       {"/properties/a/minimun", "did you mean \"minimum\"?"});
  says(refusal(R"({"type":"integer","minimum":5,"default":1})"), {"/properties/a/default"});
  says(refusal(R"({"$ref":"https://example.invalid/schema.json"})"), {"/properties/a/$ref"});
  CHECK(refusal(R"({"type":"string","pattern":"(a)\\1"})") != "accepted");
  const auto linear = schema_of(R"({"type":"object","additionalProperties":false,
    "properties":{"a":{"type":"string","pattern":"^(a+)+$"}}})",
                                SchemaProfile::settings);
  json::Object many;
  many.set("a", std::string(50'000, 'a') + "!");
  CHECK_FALSE(linear->accepts(many));
}

// ---- F06

std::string yaml(const std::string& text) {
  const auto result = parse_yaml(text);
  if (result.ok()) return json::write(result.value);
  return "error " + std::to_string(result.error.at.line) + ":" +
         std::to_string(result.error.at.column);
}

void yaml_types(Host&) {
  CHECK(yaml("a: no") == R"({"a":"no"})");
  CHECK(yaml("a: on") == R"({"a":"on"})");
  CHECK(yaml("a: 1_000") == R"({"a":"1_000"})");
  CHECK(yaml("a: 0o17") == R"({"a":15})");
  CHECK(yaml("a: '5'") == R"({"a":"5"})");
  CHECK(yaml("a: &x {b: 1}\nc: *x") == R"({"a":{"b":1},"c":{"b":1}})");
  CHECK(yaml("\xef\xbb\xbf"
             "a: 1") == R"({"a":1})");
  CHECK(yaml("x: 1\na: .inf") == "error 2:4");
  CHECK(yaml("a: 012") == "error 1:4");
  CHECK(yaml("b: &b {x: 1}\na:\n  <<: *b") == "error 3:3");
  CHECK(yaml("a: 1\nb: 2\na: 3") == "error 3:1");
  CHECK(yaml(std::string("a: x\0y", 6)) == "error 1:5");
  CHECK(yaml("a: 1\nb: \xff") == "error 2:4");
  CHECK(yaml("a:\n\tb: 1\n") == "error 2:3");
}

void yaml_bombs(Host&) {
  CHECK_FALSE(parse_yaml(std::string(100'000, '[')).ok());
  CHECK_FALSE(parse_yaml(std::string(1'048'577, 'x')).ok());
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const auto before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 1; j < 10; ++j)
      bomb += "," + before;
    bomb += "]\n";
  }
  const auto result = parse_yaml(bomb);
  CHECK_FALSE(result.ok());
  CHECK(result.error.at.line > 1);
}

// ---- F10

using Variables = std::map<std::string, std::string>;

cli::DefaultSandbox chosen(Variables variables, std::optional<std::string> named = std::nullopt) {
  cli::DefaultSandboxInput input;
  input.explicit_provider = std::move(named);
  input.env = [variables = std::move(variables)](const std::string& name) {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  };
  input.installed = [](const std::string&) { return true; };
  return cli::choose_default_sandbox(input);
}

void default_sandbox(Host&) {
  const Variables complete = {{"MASTRA_PLATFORM_ACCESS_TOKEN", "t"},
                              {"MASTRA_PROJECT_ID", "p"},
                              {"MASTRA_ENVIRONMENT_ID", "e"}};
  auto development = complete;
  development["NODE_ENV"] = "development";
  CHECK(chosen(development, "docker").provider == "docker");
  CHECK(chosen(development).provider == "local");
  CHECK(chosen(complete).provider == "platform");
  const auto incomplete = chosen({{"MASTRA_PLATFORM_ACCESS_TOKEN", "t"}});
  CHECK(incomplete.provider == "none");
  CHECK_FALSE(incomplete.warning.empty());
  const auto nothing = chosen({});
  CHECK(nothing.provider == "none");
  CHECK(nothing.warning.empty());
}

}  // namespace

void add_configuration(Procedures& to) {
  to["configuration.typing_mistake"] = typing_mistake;
  to["configuration.all_at_once"] = all_at_once;
  to["configuration.options"] = options;
  to["configuration.schemas"] = schemas;
  to["configuration.yaml_types"] = yaml_types;
  to["configuration.yaml_bombs"] = yaml_bombs;
  to["configuration.default_sandbox"] = default_sandbox;
}

}  // namespace sandforge::conformance
