// Short forms for tests of the configuration.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "sandforge/host_config.hpp"

namespace config_test {

inline sandforge::HostConfigResult read(const std::string& text,
                                        const sandforge::HostConfigSections& sections = {}) {
  return sandforge::parse_host_config(text, "c.yaml", "/etc/sandforge", sections);
}

inline std::shared_ptr<const sandforge::HostConfig> good(const std::string& text) {
  auto result = read(text);
  INFO(result.report);
  REQUIRE(result);
  CHECK(result.issues.empty());
  CHECK(result.report.empty());
  return result.config;
}

inline std::string report(const std::string& text) {
  const auto result = read(text);
  CHECK_FALSE(result);
  CHECK_FALSE(result.issues.empty());
  return result.report;
}

inline sandforge::CompiledSchemaPtr schema(const char* text, sandforge::SchemaProfile profile) {
  auto compiled = sandforge::compile_schema_text(text, profile);
  INFO(format_issues(compiled.issues));
  REQUIRE(compiled);
  return compiled.schema;
}

inline sandforge::CompiledSchemaPtr options_schema() {
  return schema(R"({
    "type":"object","additionalProperties":false,
    "properties":{
      "endpoint":{"type":"string","format":"uri"},
      "apiKey":{"type":"string","x-secret":true,"minLength":8,"pattern":"^[a-z0-9]+$"},
      "port":{"type":"integer","minimum":1,"maximum":65535},
      "defaults":{"type":"object","additionalProperties":{"type":["integer","null"]}},
      "template":{"type":"object","additionalProperties":false,"properties":{
        "buildEnv":{"type":"object","additionalProperties":{"type":"string"}}}},
      "registry":{"type":"object","additionalProperties":false,"properties":{
        "user":{"type":"string"},"password":{"type":"string","format":"password"}}},
      "env":{"type":"object","additionalProperties":{"type":"string","x-secret":true}}}})",
                sandforge::SchemaProfile::options);
}

inline sandforge::CompiledSchemaPtr settings_schema() {
  return schema(R"({
    "type":"object","additionalProperties":false,
    "properties":{"cpuCount":{"type":"integer","minimum":1,"default":2},
                  "region":{"type":"string","enum":["us","eu"]}}})",
                sandforge::SchemaProfile::settings);
}

// A source with variables and files of the test's own.
inline sandforge::ReferenceSource source(std::map<std::string, std::string> variables,
                                         std::map<std::string, std::string> files = {}) {
  sandforge::ReferenceSource out;
  out.variable = [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  out.file = [files](const std::filesystem::path& path,
                     std::string& error) -> std::optional<std::string> {
    const auto found = files.find(path.string());
    if (found != files.end()) return found->second;
    error = "No such file or directory";
    return std::nullopt;
  };
  return out;
}

}  // namespace config_test
