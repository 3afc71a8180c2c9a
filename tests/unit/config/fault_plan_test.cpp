#include "sandforge/fault_plan.hpp"

#include "helpers.hpp"

using namespace sandforge;
using config_test::good;
using config_test::report;

namespace {

json::Value document(const std::string& text) {
  auto parsed = json::parse(text);
  REQUIRE(parsed);
  return std::move(parsed.value);
}

}  // namespace

TEST_CASE("A plan of faults is read", "[config]") {
  const auto plan = read_fault_plan(document(R"({"seed": 7, "rules": [
    {"at": "start", "do": "refuse", "error": "RATE_LIMITED", "retryAfterMs": 250},
    {"at": "output", "do": "cut", "every": 3, "after": 65536},
    {"at": "info", "do": "skew", "probability": 0.5, "ms": -1000},
    {"at": "spawn", "do": "half_open", "nth": 2}]})"));
  REQUIRE(plan);
  CHECK(plan->seed == 7);
  REQUIRE(plan->rules.size() == 4);
  CHECK(plan->rules[0].at == FaultPoint::start);
  CHECK(plan->rules[0].kind == FaultKind::refuse);
  CHECK(plan->rules[0].error == Status::rate_limited);
  CHECK(plan->rules[0].retry_after == std::chrono::milliseconds(250));
  CHECK(plan->rules[1].every == 3U);
  CHECK(plan->rules[1].after == 65536);
  CHECK(plan->rules[2].time == std::chrono::milliseconds(-1000));
  CHECK(plan->rules[2].probability == 0.5);
  CHECK(plan->rules[3].nth == 2U);
  CHECK_FALSE(plan->rules[3].time);
  CHECK(check_fault_plan(*plan).empty());
}

TEST_CASE("Every name of the schema is a name of the enums, and back", "[config]") {
  for (int i = 0; to_string(static_cast<FaultPoint>(i)) != "unknown"; ++i) {
    const std::string name(to_string(static_cast<FaultPoint>(i)));
    // Crash is possible at each of them but cancel.
    const char* kind = name == "cancel" ? "drop" : "crash";
    const auto plan = read_fault_plan(
        document(R"({"rules": [{"at": ")" + name + R"(", "do": ")" + kind + "\"}]}"));
    INFO(name << (plan ? "" : plan.error().message));
    REQUIRE(plan);
    CHECK(plan->rules[0].at == static_cast<FaultPoint>(i));
  }
  for (int i = 0; to_string(static_cast<FaultKind>(i)) != "unknown"; ++i) {
    const FaultKind kind = static_cast<FaultKind>(i);
    const bool of_output = kind == FaultKind::cut;
    const std::string ms = kind == FaultKind::delay || kind == FaultKind::skew ? ", \"ms\": 1" : "";
    const auto plan = read_fault_plan(document(std::string(R"({"rules": [{"at": ")") +
                                               (of_output ? "output" : "info") + R"(", "do": ")" +
                                               std::string(to_string(kind)) + "\"" + ms + "}]}"));
    INFO(to_string(kind) << (plan ? "" : plan.error().message));
    REQUIRE(plan);
    CHECK(plan->rules[0].kind == kind);
  }
}

TEST_CASE("A plan that cannot be carried out is refused, all of it at once", "[config]") {
  const auto plan = read_fault_plan(document(R"({"rules": [
    {"at": "info", "do": "cut"},
    {"at": "start", "do": "delay"},
    {"at": "start", "do": "crash", "error": "GONE", "ms": 1},
    {"at": "start", "do": "refuse", "nth": 1, "every": 2},
    {"at": "start", "do": "drop", "ms": -1},
    {"at": "spawn", "do": "lose", "after": 5}]})"));
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == Status::invalid);
  CHECK(plan.error().reason == "faults.invalid");
  std::vector<std::string> texts;
  for (const auto& text : plan.error().details.find("issues")->as_array())
    texts.push_back(text.as_string());
  CHECK(texts == std::vector<std::string>{
                     "/rules/0/do: \"cut\" is not possible at info (allowed: refuse, lose, drop, "
                     "half_open, delay, duplicate, crash, skew)",
                     "/rules/1: \"delay\" needs \"ms\"", "/rules/2/ms: \"crash\" has no \"ms\"",
                     "/rules/2/error: \"crash\" has no \"error\"",
                     "/rules/3: only one of nth, every and probability can be given",
                     "/rules/4/ms: only \"skew\" goes back in time",
                     "/rules/5/after: only output is counted in bytes"});
  CHECK_FALSE(read_fault_plan(document("{}")));
  CHECK_FALSE(read_fault_plan(document("[]")));
}

TEST_CASE("A plan made in code is held against the same rules", "[config]") {
  FaultPlan plan;
  plan.rules.emplace_back(FaultPoint::start, FaultKind::refuse);
  CHECK(check_fault_plan(plan).empty());
  plan.rules[0].nth = 0;
  plan.rules.emplace_back(FaultPoint::info, FaultKind::drop).probability = 1.5;
  plan.rules.emplace_back(FaultPoint::info, FaultKind::drop).every = 0;
  const auto issues = check_fault_plan(plan);
  REQUIRE(issues.size() == 3);
  CHECK(issues[0].pointer == "/rules/0/nth");
  CHECK(issues[1].pointer == "/rules/1/probability");
  CHECK(issues[2].pointer == "/rules/2/every");
}

TEST_CASE("Faults belong to a provider of the configuration", "[config]") {
  const auto config = good(
      "sandbox: {provider: a, wrap: fault, faults: {rules: [{at: stop, do: drop}]}}\n"
      "providers:\n"
      "  b: {wrap: fault, faults: {seed: 3, rules: []}}\n"
      "  c: {}\n");
  CHECK(json::write(config->sandbox->faults) == R"({"rules":[{"at":"stop","do":"drop"}]})");
  CHECK(json::write(config->find_provider("b")->faults) == R"({"seed":3,"rules":[]})");
  CHECK(config->find_provider("c")->faults.is_null());
  // Where the options are shared, so are the faults, unless the sandbox has its own.
  const auto shared = good(
      "sandbox: {provider: b, wrap: fault, faults: {rules: [{at: end, do: crash}]}}\n"
      "providers:\n"
      "  b: {options: {x: 1}}\n");
  CHECK(shared->sandbox->pointer == "/providers/b");
  CHECK(json::write(shared->sandbox->faults) == R"({"rules":[{"at":"end","do":"crash"}]})");
}

TEST_CASE("Mistakes in faults are shown with their lines", "[config]") {
  CHECK(report("sandbox:\n"
               "  provider: a\n"
               "  wrap: fualt\n"
               "  faults:\n"
               "    sed: 1\n"
               "    rules:\n"
               "      - {at: strat, do: drop}\n"
               "      - {at: start, do: drop, ntth: 2}\n"
               "providers:\n"
               "  b:\n"
               "    wrap: fault\n"
               "    faults:\n"
               "      rules:\n"
               "        - {at: info, do: cut}\n"
               "  c: {wrap: fault}\n"
               "  d: {faults: {rules: []}}\n") ==
        R"(c.yaml:3:9: /sandbox/wrap: "fualt" is not allowed (allowed: fault); did you mean "fault"?
    wrap: fualt
          ^
c.yaml:5:5: /sandbox/faults/sed: unknown key "sed" (allowed: seed, rules); did you mean "seed"?
      sed: 1
      ^
c.yaml:7:14: /sandbox/faults/rules/0/at: "strat" is not allowed (allowed: open, describe, create, start, stop, destroy, info, instructions, list, attach, spawn, signal, … (16 in all)); did you mean "start"?
        - {at: strat, do: drop}
               ^
c.yaml:8:31: /sandbox/faults/rules/1/ntth: unknown key "ntth" (allowed: at, do, nth, every, probability, after, ms, error, retryAfterMs); did you mean "nth"?
        - {at: start, do: drop, ntth: 2}
                                ^
c.yaml:14:26: /providers/b/faults/rules/0/do: "cut" is not possible at info (allowed: refuse, lose, drop, half_open, delay, duplicate, crash, skew)
          - {at: info, do: cut}
                           ^
c.yaml:15:13: /providers/c/wrap: nothing to inject: "faults" is missing
    c: {wrap: fault}
              ^
c.yaml:16:7: /providers/d/faults: these faults have no effect; add "wrap: fault", or remove them
    d: {faults: {rules: []}}
        ^
)");
}
