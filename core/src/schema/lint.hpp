// The gate in front of the validator: what passes here is understood completely.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "keywords.hpp"
#include "model.hpp"
#include "sandforge/schema.hpp"

namespace sandforge::schema_detail {

constexpr std::size_t max_issues = 100;
constexpr std::size_t max_depth = 64;
constexpr std::size_t max_nodes = 100'000;
constexpr std::size_t max_schema_bytes = 1U << 20;
constexpr std::size_t max_string_bytes = 64U << 10;

// Every mistake of the schema document, at most max_issues. References are checked for form and
// target only; what they lead to is checked on the program.
std::vector<Issue> lint_schema(const json::Value& schema, SchemaProfile profile);

// What a walk over a value found; it stops early when a limit is passed.
struct Measure {
  std::size_t depth = 0;
  std::size_t nodes = 0;
  std::size_t bytes = 0;
  std::size_t longest_string = 0;
};
Measure measure(const json::Value& value);

// The checks of one keyword's value, without looking at its neighbours. Shared state of a lint run.
class IssueList {
 public:
  void add(std::string pointer, std::string_view keyword, std::string message,
           std::string suggestion = {}, std::string allowed = {});
  bool full() const noexcept { return issues_.size() >= max_issues; }
  std::vector<Issue> take() { return std::move(issues_); }

 private:
  std::vector<Issue> issues_;
};

// False when the value does not have the keyword's shape; then it must not be looked into.
bool check_shape(const Keyword& keyword, const json::Value& value, const std::string& pointer,
                 SchemaProfile profile, IssueList& issues);

// Rules between keywords of one subschema: bounds in order, defaults of secrets, titles of enums.
void check_neighbours(const json::Object& schema, const std::string& pointer, IssueList& issues);

// "#/definitions/a~1b%20c" to "/definitions/a~1b c"; false when it is no local reference.
bool reference_pointer(std::string_view reference, std::string& pointer);

std::string child(const std::string& pointer, std::string_view token);

}  // namespace sandforge::schema_detail
