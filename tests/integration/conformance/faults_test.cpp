// Each fault of a plugin is found by the case that is there for it.
#include <algorithm>

#include "fixture.hpp"

using namespace conformance_test;

namespace {

struct Found {
  Verdict verdict;
  std::string reason;
};

Found judged(const std::string& fault, const std::string& id,
             std::optional<std::chrono::milliseconds> bound = std::nullopt) {
  auto wanted = crooked(fault, {id});
  wanted.bound = bound;
  const auto report = conformance::run(wanted);
  REQUIRE(report.cases.size() == 1);
  return {report.cases[0].verdict, report.cases[0].reason};
}

void fails(const std::string& fault, const std::string& id, const std::string& because,
           std::optional<std::chrono::milliseconds> bound = std::nullopt) {
  CAPTURE(fault, id);
  const auto right = judged("", id);
  CAPTURE(right.reason);
  CHECK(right.verdict == Verdict::pass);
  const auto wrong = judged(fault, id, bound);
  CAPTURE(wrong.reason);
  CHECK(wrong.verdict == Verdict::fail);
  CHECK(wrong.reason.find(because) != std::string::npos);
}

}  // namespace

TEST_CASE("a plugin that invents exit 0 fails") {
  fails("invents exit 0", "cases.B01", "signaled");
  fails("invents exit 0", "contract.A4", "result.exit_code");
}

TEST_CASE("a plugin that leaves a process fails") {
  fails("leaks a process", "contract.A1", "left running:");
}

TEST_CASE("a plugin that leaves a descriptor open fails") {
  fails("leaks a descriptor", "contract.A1", "left open: descriptor");
}

TEST_CASE("a plugin that leaves files behind fails") {
  fails("keeps its files", "cases.D02.restart", "left behind: tmp/root");
}

TEST_CASE(
    "a plugin that starts only once fails, and the hooks of its end find what they write to") {
  fails("starts once", "cases.D02.hooks", "it does not start again");
}

TEST_CASE("a plugin that ignores the environment fails") {
  fails("ignores the environment", "contract.A7", "first");
}

TEST_CASE("a plugin that mixes the streams up fails") {
  fails("drops standard error", "contract.A3", "oops");
}

TEST_CASE("a plugin that never calls done fails at the bound") {
  fails("never done", "contract.B4", "took longer than 3000 ms", std::chrono::milliseconds(3000));
}

TEST_CASE("a plugin that prints fails") {
  fails("prints", "contract.A1", "printed \"running a command");
}

TEST_CASE("a plugin that ends its process fails, and nobody else does") {
  fails("crashes", "contract.A1", "was ended by signal 6");
}

TEST_CASE("a plugin that makes a second machine fails") {
  fails("second machine", "cases.D02.restart", "kept");
}

TEST_CASE("what is declared absent is refused, also where the plugin could do it") {
  const auto found = judged("hides what it can", "contract.A7");
  CHECK(found.verdict == Verdict::not_applicable);
  CHECK(found.reason == "env.per_command is declared absent, and refused as unsupported");
}

TEST_CASE("what is declared and exercised by no case is unverified") {
  const auto found = judged("boasts", "cases.F03.exercised");
  CHECK(found.verdict == Verdict::unverified);
  CHECK(found.reason == "declared, and exercised by no case: teleportation");
}

TEST_CASE("what needs a feature that is not there is not applicable, or refused") {
  const auto files = judged("", "cases.G_files");
  CHECK(files.verdict == Verdict::not_applicable);
  CHECK(files.reason.find("files is declared absent") == 0);
}
