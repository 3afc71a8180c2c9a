// The examples of the sdk are what the suite calls good.
#include "fixture.hpp"
#include "test_paths.hpp"

using namespace conformance_test;

namespace {

// A case takes four times as long there, and all of them run in the other builds.
#if defined(__SANITIZE_ADDRESS__)
const bool kSanitized = true;
#else
const bool kSanitized = false;
#endif

// What is neither pass nor not applicable.
std::vector<std::string> not_green(const conformance::Report& report) {
  std::vector<std::string> out;
  for (const auto& one : report.cases)
    if (one.verdict == Verdict::fail || one.verdict == Verdict::unverified) out.push_back(one.id);
  return out;
}

conformance::Request example(const char* plugin, const char* folder) {
  auto out = request(plugin);
  out.case_files = {std::filesystem::path(SANDFORGE_SOURCE_DIR) / "sdk/examples" / folder /
                    "cases.json"};
  return out;
}

Verdict verdict_of(const conformance::Report& report, const std::string& id) {
  for (const auto& one : report.cases)
    if (one.id == id) return one.verdict;
  FAIL("there is no case " + id);
  return Verdict::unverified;
}

}  // namespace

TEST_CASE("the minimal provider in C++ passes the whole suite") {
  const auto report = conformance::run(kSanitized ? request(EXAMPLE_MINIMAL_CPP, {"cases.A*"})
                                                  : request(EXAMPLE_MINIMAL_CPP));
  INFO(to_text(report));
  CHECK(not_green(report).empty());
  CHECK(report.count(Verdict::pass) > (kSanitized ? 30U : 220U));
}

// All of it by tests/package: it is the template for plugins of C, too.
TEST_CASE("the minimal provider in C passes what is about sandboxes and the ends of commands") {
  auto wanted = request(EXAMPLE_MINIMAL_C, {"cases.A0*", "cases.D*"});
  if (!kSanitized) {
    for (const auto* more : {"cases.A17*", "cases.A19*", "cases.B*", "contract.E*"})
      wanted.include.emplace_back(more);
  }
  const auto report = conformance::run(wanted);
  INFO(to_text(report));
  CHECK(not_green(report).empty());
}

TEST_CASE("the provider in coroutines passes, its commands by cases of its own") {
  const auto report = conformance::run(example(EXAMPLE_COROUTINE_CPP, "coroutine_cpp"));
  INFO(to_text(report));
  CHECK(not_green(report).empty());
  CHECK(verdict_of(report, "clock.cat") == Verdict::pass);
  CHECK(verdict_of(report, "cases.D08.at_once") == Verdict::pass);
  CHECK(verdict_of(report, "cases.A01") == Verdict::not_applicable);
}

TEST_CASE("features that only cases of its own exercise are unverified without them") {
  const auto report =
      conformance::run(request(EXAMPLE_COROUTINE_CPP, {"cases.F03.exercised", "cases.A01"}));
  INFO(to_text(report));
  CHECK(verdict_of(report, "cases.F03.exercised") == Verdict::unverified);
  CHECK(report.cases.front().reason.find("commands.own") != std::string::npos);
}

TEST_CASE("the provider with builds passes, also the cases of templates and builds") {
  const auto report = conformance::run(example(EXAMPLE_BUILDS_CPP, "builds_cpp"));
  INFO(to_text(report));
  CHECK(not_green(report).empty());
  CHECK(verdict_of(report, "kitchen.image") == Verdict::pass);
  for (const auto* row :
       {"E04", "E05", "E06", "E07", "E08", "E10", "E11", "E12", "E13", "E14", "E15", "E16"}) {
    CAPTURE(row);
    CHECK(verdict_of(report, std::string("cases.") + row) == Verdict::pass);
  }
}
