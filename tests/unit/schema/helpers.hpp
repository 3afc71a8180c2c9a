// Short forms for tests of schemas.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/schema.hpp"

namespace schema_test {

inline sandforge::json::Value parse(std::string_view text) {
  const auto result = sandforge::json::parse(text);
  INFO(text << "\n" << result.error.message);
  REQUIRE(result.ok());
  return result.value;
}

inline sandforge::CompiledSchemaPtr compile(
    std::string_view text, sandforge::SchemaProfile profile = sandforge::SchemaProfile::full) {
  const auto result = sandforge::compile_schema_text(text, profile);
  INFO(text << "\n" << format_issues(result.issues));
  REQUIRE(result);
  return result.schema;
}

// "ok", or every reason why the schema was refused.
inline std::string lint(std::string_view text, sandforge::SchemaProfile profile) {
  const auto result = sandforge::compile_schema_text(text, profile);
  return result ? "ok" : format_issues(result.issues);
}

// A settings schema with one property `a`.
inline std::string settings_with(std::string_view property) {
  return R"({"type":"object","additionalProperties":false,"properties":{"a":)" +
         std::string(property) + "}}";
}

inline std::string problems(const sandforge::CompiledSchema& schema, std::string_view document) {
  const auto value = parse(document);
  const auto issues = schema.validate(value);
  CHECK(schema.accepts(value) == issues.empty());
  return issues.empty() ? "ok" : format_issues(issues);
}

}  // namespace schema_test
