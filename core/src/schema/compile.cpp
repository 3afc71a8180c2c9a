#include <exception>

#include "explain.hpp"
#include "impl.hpp"
#include "lint.hpp"
#include "quote.hpp"

namespace sandforge {
namespace {

namespace sd = schema_detail;

std::vector<Issue> too_large(std::string message) {
  return {Issue{"", "", std::move(message), {}, {}}};
}

std::vector<Issue> check_size(const json::Value& schema) {
  const sd::Measure size = sd::measure(schema);
  if (size.depth > sd::max_depth) return too_large("the schema nests deeper than 64 levels");
  if (size.nodes > sd::max_nodes) return too_large("the schema has more than 100000 values");
  if (size.bytes > sd::max_schema_bytes) return too_large("the schema is larger than 1 MiB");
  if (size.longest_string > sd::max_string_bytes) {
    return too_large("the schema has a string of more than 64 KiB");
  }
  return {};
}

// A default that its own schema refuses would make every empty document invalid.
void check_defaults(const sd::Program& program, std::vector<Issue>& issues) {
  for (const sd::Node& node : program.nodes) {
    if (!node.default_value || issues.size() >= sd::max_issues) continue;
    const auto found = sd::explain(node, *node.default_value);
    if (found.empty()) continue;
    const Issue& first = found.front();
    issues.push_back({sd::child(node.pointer, "default") + first.pointer, "default",
                      "the default is refused by its own schema: " + first.message, first.allowed,
                      first.suggestion});
  }
}

// The defaults together must fit the whole schema; what is missing is the user's to give.
void check_empty_document(const CompiledSchema& schema, std::vector<Issue>& issues) {
  json::Value document{json::Object()};
  if (!schema.apply_defaults(document)) {
    issues.push_back(
        {"", "default", "the defaults fill in more and more defaults without end", {}, {}});
    return;
  }
  for (Issue& issue : schema.validate(document)) {
    if (issue.keyword == "required" || issue.keyword == "dependencies") continue;
    if (issue.keyword == "minProperties" || issue.keyword == "anyOf" || issue.keyword == "oneOf") {
      continue;
    }
    issue.message = "the defaults together are refused: " + issue.pointer + " " + issue.message;
    issue.pointer.clear();
    issues.push_back(std::move(issue));
  }
}

CompileResult failed(std::vector<Issue> issues) {
  return {nullptr, std::move(issues)};
}

CompileResult compile_checked(const json::Value& schema, SchemaProfile profile) {
  auto impl = std::make_unique<CompiledSchema::Impl>();
  sd::Program& program = impl->program;
  program.profile = profile;
  program.source = schema;
  std::vector<Issue> issues;
  sd::build_program(program, issues);
  if (issues.empty()) check_defaults(program, issues);
  if (!issues.empty()) return failed(std::move(issues));
  impl->engine = std::make_unique<const sd::Engine>(program);
  auto compiled = std::make_shared<const CompiledSchema>(std::move(impl));
  if (profile != SchemaProfile::full) check_empty_document(*compiled, issues);
  if (!issues.empty()) return failed(std::move(issues));
  return {std::move(compiled), {}};
}

}  // namespace

CompileResult compile_schema(const json::Value& schema, SchemaProfile profile) {
  try {
    std::vector<Issue> issues = check_size(schema);
    if (issues.empty()) issues = sd::lint_schema(schema, profile);
    if (!issues.empty()) return failed(std::move(issues));
    return compile_checked(schema, profile);
  } catch (const std::exception& error) {
    return failed(
        {Issue{"", "", std::string("the schema cannot be compiled: ") + error.what(), {}, {}}});
  }
}

CompileResult compile_schema_text(std::string_view text, SchemaProfile profile) {
  if (text.size() > sd::max_schema_bytes)
    return failed(too_large("the schema is larger than 1 MiB"));
  const json::ParseResult parsed = json::parse(text);
  if (parsed) return compile_schema(parsed.value, profile);
  const std::string where = "line " + std::to_string(parsed.error.line) + ", column " +
                            std::to_string(parsed.error.column) + ": ";
  return failed({Issue{"", "", where + parsed.error.message, {}, {}}});
}

}  // namespace sandforge
