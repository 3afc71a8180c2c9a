#include "plugin/schema_check.hpp"

#include <string>

#include "sandforge/schema_error.hpp"

namespace sandforge {

Result<void> check_schema(const json::Value& schema, SchemaProfile profile) {
  const auto compiled = compile_schema(schema, profile);
  if (compiled) return {};
  auto error = issues_error(compiled.issues, {}, "schema.invalid");
  if (const auto more = compiled.issues.size() - 1; more > 0)
    error.message += " (and " + std::to_string(more) + " more)";
  return error;
}

}  // namespace sandforge
