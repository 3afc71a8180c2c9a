// Validation of a settings document, its schema compiled, against valijson on the same two.
#include <stdexcept>

#include <valijson/adapters/rapidjson_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "micro.hpp"
#include "sandforge/schema.hpp"

namespace sandforge::bench {
namespace {

// The settings of the remote providers, the largest that ship.
constexpr const char* kSchema = R"({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "properties": {
    "cpuCount": {"type": "integer", "minimum": 1, "maximum": 64, "default": 2},
    "memoryMb": {"type": "integer", "minimum": 128, "maximum": 262144, "multipleOf": 2},
    "idleTimeoutMinutes": {"type": "integer", "minimum": 1, "maximum": 1440}
  },
  "additionalProperties": false
})";
constexpr const char* kDocument = R"({"cpuCount": 4, "memoryMb": 4096, "idleTimeoutMinutes": 30})";

void parse_bare(const char* text, rapidjson::Document& out) {
  if (out.Parse(text).HasParseError()) throw std::runtime_error("bad JSON");
}

}  // namespace

std::vector<Row> schema_rows(const Scale& scale) {
  const auto compiled = compile_schema_text(kSchema, SchemaProfile::settings);
  if (!compiled) throw std::runtime_error(format_issues(compiled.issues));
  const auto document = json::parse(kDocument);

  rapidjson::Document bare_schema, bare_document;
  parse_bare(kSchema, bare_schema);
  parse_bare(kDocument, bare_document);
  valijson::Schema bare;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::RapidJsonAdapter(bare_schema), bare);

  const Pair pair = compare(
      scale,
      [&](benchmark::State& state) {
        for (auto _ : state)
          if (!compiled.schema->validate(document.value).empty()) state.SkipWithError("refused");
      },
      [&](benchmark::State& state) {
        for (auto _ : state) {
          valijson::Validator validator;
          const valijson::adapters::RapidJsonAdapter target(bare_document);
          if (!validator.validate(bare, target, nullptr)) state.SkipWithError("refused");
        }
      });
  return {{"schema.validate", "a settings document, schema compiled, against bare valijson", "us",
           pair.subject / 1e3, pair.peer / 1e3, Goal::at_most(1, Figure::subject)}};
}

}  // namespace sandforge::bench
