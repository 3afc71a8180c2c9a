// What the suite finds of templates and builds that are wrong.
#include "sandforge/builds.hpp"

#include "fixture.hpp"

using namespace conformance_test;

TEST_CASE("the states of a build have names") {
  using sandforge::BuildStatus;
  std::string all;
  for (int i = 0; i <= static_cast<int>(BuildStatus::failed); ++i)
    all += std::string(to_string(static_cast<BuildStatus>(i))) + " ";
  CHECK(all == "unknown pending building ready failed ");
  CHECK(to_string(static_cast<BuildStatus>(99)) == "unknown");
}

TEST_CASE("each fault of templates and builds is found by its case") {
  struct Row {
    const char* fault;
    const char* id;
    const char* because;
  };
  for (const auto& row : {
           Row{"identity by session", "cases.E04", "renamed.identity"},
           Row{"says not why", "cases.E05", "\"17\""},
           Row{"token in the template", "cases.E07", "the secret is in the template"},
           Row{"fails a second cancel", "cases.E08", "it has ended"},
           Row{"ends at a failure", "cases.E09", "\"failed\" == \"ready\""},
           Row{"forgets who goes on", "cases.E09", "seen.size()"},
           Row{"asks twice", "cases.E09", "(*asked)[name]"},
           Row{"falls back across sizes", "cases.E12", "Provenance::family"},
           Row{"keeps ephemeral values", "cases.E13", "the secret is in what is told of the build"},
           Row{"invents a status", "cases.E15", "unknown"},
       }) {
    CAPTURE(row.fault);
    auto wanted = request(CROOKED_BUILDS_PLUGIN, {row.id});
    wanted.subject.options.set("fault", row.fault);
    const auto report = conformance::run(wanted);
    REQUIRE(report.cases.size() == 1);
    CAPTURE(report.cases[0].reason);
    CHECK(report.cases[0].verdict == Verdict::fail);
    CHECK(report.cases[0].reason.find(row.because) != std::string::npos);
  }
}
