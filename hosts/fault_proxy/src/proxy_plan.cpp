#include "proxy_plan.hpp"

#include <array>
#include <stdexcept>
#include <string_view>

#include "sandforge/schema_error.hpp"
#include "sandforge/yaml.hpp"

namespace sandforge::proxy {
namespace {

constexpr std::array<std::string_view, 5> kFaults{"delay", "cut", "black_hole", "refuse", "answer"};
constexpr std::array<std::string_view, 3> kDirections{"up", "down", "both"};

template <class Names>
std::size_t index_of(const Names& names, std::string_view name) {
  std::size_t i = 0;
  while (i < names.size() && names[i] != name)
    ++i;
  return i;
}

const CompiledSchema& schema() {
  static const CompiledSchemaPtr compiled = [] {
    auto result = compile_schema_text(proxy_schema, SchemaProfile::full);
    if (!result) throw std::logic_error(format_issues(result.issues));
    return std::move(result.schema);
  }();
  return *compiled;
}

Direction usual_direction(ProxyFault fault) {
  switch (fault) {
    case ProxyFault::cut:
      return Direction::down;
    case ProxyFault::refuse:
    case ProxyFault::answer:
      return Direction::up;
    default:
      return Direction::both;
  }
}

// What the schema cannot say.
void check(const json::Value& entry, const std::string& pointer, std::vector<Issue>& out) {
  const auto fault = static_cast<ProxyFault>(index_of(kFaults, entry.find("do")->as_string()));
  const auto only = [&](const char* member, ProxyFault of) {
    if (entry.find(member) != nullptr && fault != of)
      out.push_back({pointer + '/' + member,
                     "additionalProperties",
                     '"' + std::string(member) + "\" belongs to " +
                         std::string(kFaults[static_cast<std::size_t>(of)]),
                     {},
                     {}});
  };
  only("ms", ProxyFault::delay);
  only("status", ProxyFault::answer);
  only("retryAfter", ProxyFault::answer);
  const auto needs = [&](const char* member, ProxyFault of) {
    if (entry.find(member) == nullptr && fault == of)
      out.push_back(
          {pointer,
           "required",
           '"' + std::string(kFaults[static_cast<std::size_t>(of)]) + "\" needs \"" + member + '"',
           {},
           {}});
  };
  needs("ms", ProxyFault::delay);
  needs("status", ProxyFault::answer);
  const auto not_both = [&](const char* a, const char* b) {
    if (entry.find(a) != nullptr && entry.find(b) != nullptr)
      out.push_back({pointer,
                     "oneOf",
                     std::string("only one of ") + a + " and " + b + " can be given",
                     {},
                     {}});
  };
  not_both("nth", "every");
  not_both("after", "pattern");
  const bool fixed = fault == ProxyFault::refuse || fault == ProxyFault::answer;
  if (fixed && entry.find("direction") != nullptr)
    out.push_back({pointer + "/direction",
                   "additionalProperties",
                   "it looks at what the client sends",
                   {},
                   {}});
  if (fixed && entry.find("after") != nullptr)
    out.push_back({pointer + "/after",
                   "additionalProperties",
                   "give a \"pattern\" to strike later than at once",
                   {},
                   {}});
}

std::optional<std::uint64_t> count_of(const json::Value* value) {
  if (value == nullptr) return std::nullopt;
  return static_cast<std::uint64_t>(value->as_number());
}

ProxyRule read(const json::Value& entry) {
  ProxyRule rule(static_cast<ProxyFault>(index_of(kFaults, entry.find("do")->as_string())));
  rule.nth = count_of(entry.find("nth"));
  rule.every = count_of(entry.find("every"));
  rule.direction = usual_direction(rule.fault);
  if (const auto* value = entry.find("direction"))
    rule.direction = static_cast<Direction>(index_of(kDirections, value->as_string()));
  rule.after = count_of(entry.find("after")).value_or(0);
  if (const auto* value = entry.find("pattern")) rule.pattern = value->as_string();
  rule.delay = std::chrono::milliseconds(count_of(entry.find("ms")).value_or(0));
  rule.status = static_cast<int>(count_of(entry.find("status")).value_or(502));
  if (const auto seconds = count_of(entry.find("retryAfter")))
    rule.retry_after = static_cast<int>(*seconds);
  return rule;
}

}  // namespace

Result<ProxyPlan> read_proxy_plan(const json::Value& document) {
  auto issues = schema().validate(document);
  ProxyPlan plan;
  if (issues.empty()) {
    const auto& rules = document.find("rules")->as_array();
    for (std::size_t i = 0; i < rules.size(); ++i) {
      check(rules[i], "/rules/" + std::to_string(i), issues);
      plan.rules.push_back(read(rules[i]));
    }
  }
  if (issues.empty()) return plan;
  return issues_error(issues, "the rules are not valid: ", "proxy.rules");
}

Result<ProxyPlan> parse_proxy_plan(const std::string& name, const std::string& text) {
  const YamlResult read = parse_yaml(text);
  if (read) return read_proxy_plan(read.value);
  return Error(Status::invalid,
               name + ":" + std::to_string(read.error.at.line) + ": " + read.error.message,
               "proxy.rules");
}

}  // namespace sandforge::proxy
