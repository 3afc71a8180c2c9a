// Schemas and documents, one JSON array of two: no crash, no hang, and a refusal has a reason.
// fuzz-libs: sandforge::schema
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sandforge/schema.hpp"
#include "sandforge/settings.hpp"

namespace {

void demand(bool condition) {
  if (!condition) std::abort();
}

void check(const sandforge::CompiledSchema& schema, const sandforge::json::Value& document) {
  const bool accepted = schema.accepts(document);
  const auto issues = schema.validate(document);
  demand(accepted == issues.empty());
  sandforge::format_issues(issues);
  auto filled = document;
  const bool whole = schema.apply_defaults(filled);
  const auto effective = sandforge::effective_settings(schema, document);
  demand(whole || !effective.issues.empty());
  const auto update = sandforge::update_settings(schema, {}, document);
  demand(update.accepted == update.issues.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = sandforge::json::parse(text);
  if (!parsed || !parsed.value.is_array() || parsed.value.as_array().size() != 2) return 0;
  const auto& pair = parsed.value.as_array();
  for (const auto profile : {sandforge::SchemaProfile::settings, sandforge::SchemaProfile::options,
                             sandforge::SchemaProfile::full}) {
    const auto compiled = sandforge::compile_schema(pair[0], profile);
    demand(bool(compiled) == compiled.issues.empty());
    if (compiled) check(*compiled.schema, pair[1]);
  }
  return 0;
}
