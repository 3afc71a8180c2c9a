// What the suite finds of checkpoints that are wrong, and that it calls right ones good.
#include "fixture.hpp"

using namespace conformance_test;

namespace {

const std::vector<std::string> kCases = {"cases.E01*", "cases.E02*", "cases.E03*",
                                         "cases.D02.checkpoint"};

void all_pass(const conformance::Request& wanted) {
  const auto report = conformance::run(wanted);
  INFO(to_text(report));
  CHECK(report.cases.size() == 5);
  CHECK(report.count(Verdict::pass) == report.cases.size());
}

}  // namespace

TEST_CASE("checkpoints of local, and of the example for authors, are right") {
  all_pass(request(LOCAL_PLUGIN, kCases));
  all_pass(request(EXAMPLE_CHECKPOINTS_CPP, kCases));
  all_pass(request(CROOKED_CHECKPOINTS_PLUGIN, kCases));
}

TEST_CASE("each fault of checkpoints is found by its case") {
  struct Row {
    const char* fault;
    const char* id;
    const char* because;
  };
  for (const auto& row : {
           Row{"destroys checkpoints", "cases.E01", "kept.has_value()"},
           Row{"forgets the files", "cases.E01", "round-"},
           Row{"answers connected", "cases.E01", "StartOutcome::created"},
           Row{"captures nothing", "cases.E01", "kept.has_value()"},
           Row{"keeps what is removed", "cases.E01", "is still there"},
           Row{"changes the seed", "cases.E02", "kept->created_at_ns"},
           Row{"says base", "cases.E02", "provenance"},
           Row{"starts from nothing", "cases.E02.from", "no error was thrown"},
           Row{"captures by itself", "cases.E03", "before"},
           Row{"captures at the end", "cases.D02.checkpoint", "\"after\""},
       }) {
    CAPTURE(row.fault);
    auto wanted = request(CROOKED_CHECKPOINTS_PLUGIN, {row.id});
    wanted.subject.options.set("fault", row.fault);
    const auto report = conformance::run(wanted);
    REQUIRE(report.cases.size() == 1);
    CAPTURE(report.cases[0].reason);
    CHECK(report.cases[0].verdict == Verdict::fail);
    CHECK(report.cases[0].reason.find(row.because) != std::string::npos);
  }
}
