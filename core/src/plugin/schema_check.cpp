#include "plugin/schema_check.hpp"

#include <string>
#include <utility>

namespace sandforge {

Result<void> check_schema(const json::Value& schema, SchemaProfile profile) {
  const auto compiled = compile_schema(schema, profile);
  if (compiled) return {};
  json::Array issues;
  for (const Issue& issue : compiled.issues)
    issues.emplace_back(format_issue(issue));
  Error error(Status::invalid, format_issue(compiled.issues.front()), "schema.invalid");
  if (issues.size() > 1) error.message += " (and " + std::to_string(issues.size() - 1) + " more)";
  error.details.set("issues", std::move(issues));
  return error;
}

}  // namespace sandforge
