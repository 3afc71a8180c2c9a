#include "sandforge/fault_plan.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <stdexcept>
#include <type_traits>

#include "config_schema.hpp"
#include "sandforge/schema_error.hpp"

namespace sandforge {
namespace {

using K = FaultKind;

constexpr std::uint32_t bit(FaultKind kind) {
  return 1U << static_cast<unsigned>(kind);
}
constexpr std::uint32_t bits(std::initializer_list<FaultKind> kinds) {
  std::uint32_t out = 0;
  for (const FaultKind kind : kinds)
    out |= bit(kind);
  return out;
}

constexpr std::uint32_t kOnce =
    bits({K::refuse, K::lose, K::drop, K::half_open, K::delay, K::crash});
constexpr std::uint32_t kCall = kOnce | bit(K::duplicate);

struct Point {
  const char* name;
  std::uint32_t kinds;
};
// In the order of FaultPoint.
constexpr std::array<Point, 16> kPoints{{
    {"open", kOnce},
    {"describe", kCall},
    {"create", bits({K::refuse, K::crash})},
    {"start", kCall},
    {"stop", kCall},
    {"destroy", kCall},
    {"info", kCall | bit(K::skew)},
    {"instructions", kCall},
    {"list", kCall},
    {"attach", kOnce},
    {"spawn", kCall},
    {"signal", kCall},
    {"cancel", bit(K::drop)},
    {"input", bits({K::refuse, K::drop, K::cut, K::crash})},
    {"output", bits({K::cut, K::half_open, K::delay, K::crash})},
    {"end", bits({K::lose, K::half_open, K::delay, K::duplicate, K::crash})},
}};
constexpr std::array<const char*, 9> kKinds{"refuse",    "lose",  "drop", "half_open", "delay",
                                            "duplicate", "crash", "cut",  "skew"};

constexpr std::uint32_t kTimed = bits({K::delay, K::skew});
constexpr std::uint32_t kMayBeTimed = kTimed | bits({K::drop, K::half_open});
constexpr std::uint32_t kWithError = bits({K::refuse, K::lose, K::drop, K::half_open, K::cut});

std::string names(std::uint32_t kinds) {
  std::string out;
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if ((kinds & (1U << i)) != 0) out += (out.empty() ? "" : ", ") + std::string(kKinds[i]);
  return out;
}

template <class Names>
std::size_t index_of(const Names& all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) {
    if constexpr (std::is_same_v<std::decay_t<decltype(entry)>, Point>) {
      return name == entry.name;
    } else {
      return name == entry;
    }
  });
  return static_cast<std::size_t>(found - all.begin());
}

Status status_of(std::string_view name) {
  for (int code = 1; code < 16; ++code)
    if (to_string(static_cast<Status>(code)) == name) return static_cast<Status>(code);
  return Status::internal;
}

void check_rule(const FaultRule& rule, const std::string& pointer, std::vector<Issue>& out) {
  const auto add = [&](const char* member, const char* keyword, std::string message,
                       std::string allowed = {}) {
    out.push_back({pointer + '/' + member, keyword, std::move(message), std::move(allowed), {}});
  };
  const std::string kind(to_string(rule.kind));
  const std::uint32_t self = bit(rule.kind);
  const std::uint32_t possible = kPoints[static_cast<std::size_t>(rule.at)].kinds;
  if ((possible & self) == 0)
    add("do", "enum", '"' + kind + "\" is not possible at " + std::string(to_string(rule.at)),
        names(possible));
  if ((kTimed & self) != 0 && !rule.time)
    out.push_back({pointer, "required", '"' + kind + "\" needs \"ms\"", {}, {}});
  if ((kMayBeTimed & self) == 0 && rule.time)
    add("ms", "additionalProperties", '"' + kind + "\" has no \"ms\"");
  if (rule.time && *rule.time < std::chrono::milliseconds(0) && rule.kind != K::skew)
    add("ms", "minimum", "only \"skew\" goes back in time");
  if ((kWithError & self) == 0 && rule.error)
    add("error", "additionalProperties", '"' + kind + "\" has no \"error\"");
  if ((kWithError & self) == 0 && rule.retry_after)
    add("retryAfterMs", "additionalProperties", '"' + kind + "\" has no \"retryAfterMs\"");
  if (rule.after != 0 && rule.at != FaultPoint::output)
    add("after", "additionalProperties", "only output is counted in bytes");
  if (rule.after != 0 && rule.kind == K::delay)
    add("after", "additionalProperties", "all output is delayed");
  const int occurrences =
      int{rule.nth.has_value()} + int{rule.every.has_value()} + int{rule.probability.has_value()};
  if (occurrences > 1)
    out.push_back(
        {pointer, "oneOf", "only one of nth, every and probability can be given", {}, {}});
  if (rule.nth == 0U) add("nth", "minimum", "occurrences are counted from 1");
  if (rule.every == 0U) add("every", "minimum", "nothing comes every 0 times");
  if (rule.probability && !(*rule.probability > 0 && *rule.probability <= 1))
    add("probability", "maximum", "a probability is above 0 and at most 1");
}

// The part of the published schema that describes `faults`.
const CompiledSchema& faults_schema() {
  static const CompiledSchemaPtr schema = [] {
    const json::Value host = json::parse(config_detail::host_config_schema).value;
    json::Object root;
    root.set("$schema", *host.find("$schema"));
    root.set("definitions", *host.find("definitions"));
    json::Object part;
    part.set("$ref", "#/definitions/faults");
    root.set("allOf", json::Array{std::move(part)});
    auto compiled = compile_schema(std::move(root), SchemaProfile::full);
    if (!compiled) throw std::logic_error(format_issues(compiled.issues));
    return std::move(compiled.schema);
  }();
  return *schema;
}

std::optional<std::uint64_t> count_of(const json::Value* value) {
  if (value == nullptr) return std::nullopt;
  return static_cast<std::uint64_t>(value->as_number());  // 2.0 is an integer, too
}
std::optional<std::chrono::milliseconds> time_of(const json::Value* value) {
  if (value == nullptr) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(value->as_number()));
}

// Of a document that the schema accepts.
FaultPlan read(const json::Value& document) {
  FaultPlan plan;
  plan.seed = count_of(document.find("seed")).value_or(0);
  for (const json::Value& entry : document.find("rules")->as_array()) {
    FaultRule rule;
    rule.at = static_cast<FaultPoint>(index_of(kPoints, entry.find("at")->as_string()));
    rule.kind = static_cast<FaultKind>(index_of(kKinds, entry.find("do")->as_string()));
    rule.nth = count_of(entry.find("nth"));
    rule.every = count_of(entry.find("every"));
    if (const auto* value = entry.find("probability")) rule.probability = value->as_number();
    rule.after = count_of(entry.find("after")).value_or(0);
    rule.time = time_of(entry.find("ms"));
    if (const auto* value = entry.find("error")) rule.error = status_of(value->as_string());
    rule.retry_after = time_of(entry.find("retryAfterMs"));
    plan.rules.push_back(rule);
  }
  return plan;
}

}  // namespace

std::string_view to_string(FaultPoint point) noexcept {
  const auto index = static_cast<std::size_t>(point);
  return index < kPoints.size() ? kPoints[index].name : "unknown";
}

std::string_view to_string(FaultKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  return index < kKinds.size() ? kKinds[index] : "unknown";
}

std::vector<Issue> check_fault_plan(const FaultPlan& plan) {
  std::vector<Issue> out;
  for (std::size_t i = 0; i < plan.rules.size(); ++i)
    check_rule(plan.rules[i], "/rules/" + std::to_string(i), out);
  return out;
}

std::vector<Issue> check_faults(const json::Value& document) {
  auto issues = faults_schema().validate(document);
  if (issues.empty()) issues = check_fault_plan(read(document));
  return issues;
}

Result<FaultPlan> read_fault_plan(const json::Value& document) {
  const auto issues = check_faults(document);
  if (issues.empty()) return read(document);
  return issues_error(issues, "the faults are not valid: ", "faults.invalid");
}

}  // namespace sandforge
