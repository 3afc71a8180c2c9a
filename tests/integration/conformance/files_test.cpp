// What the suite finds of files that are served wrongly.
#include "fixture.hpp"

using namespace conformance_test;

namespace {

conformance::Report run_files(const std::string& fault, std::vector<std::string> include) {
  auto wanted = request(CROOKED_FILES_PLUGIN, std::move(include));
  wanted.subject.options.set("root", "${SANDFORGE_CASE_DIR}/tmp/root");
  wanted.subject.options.set("fault", fault);
  return conformance::run(wanted);
}

}  // namespace

TEST_CASE("files that are served as they should be pass") {
  const auto report =
      run_files("", {"cases.G_files", "cases.G_names", "cases.G_large", "cases.G_watch"});
  REQUIRE(report.cases.size() == 4);
  for (const auto& one : report.cases) {
    CAPTURE(one.id, one.reason);
    CHECK(one.verdict == Verdict::pass);
  }
}

TEST_CASE("each fault of files is found by its case") {
  struct Row {
    const char* fault;
    const char* id;
    const char* because;
  };
  for (const auto& row : {
           Row{"forgets modes", "cases.G_files", "640"},
           Row{"writes in place", "cases.G_files", "\"old\""},
           Row{"moves over what is there", "cases.G_files", "error"},
           Row{"lists half", "cases.G_names", "all"},
           Row{"cleans names", "cases.G_names", "all"},
           Row{"follows links outside", "cases.G_links", "must be something else"},
           Row{"ends early", "cases.G_large", "must be 1073741824"},
           Row{"watches only the top", "cases.G_watch", "create top/old/file"},
       }) {
    CAPTURE(row.fault);
    const auto report = run_files(row.fault, {row.id});
    REQUIRE(report.cases.size() == 1);
    CAPTURE(report.cases[0].reason);
    CHECK(report.cases[0].verdict == Verdict::fail);
    CHECK(report.cases[0].reason.find(row.because) != std::string::npos);
  }
}

TEST_CASE("local passes the cases of files") {
  const auto report =
      conformance::run(request(LOCAL_PLUGIN, {"cases.G_files", "cases.G_links", "cases.G_names",
                                              "cases.G_large", "cases.G_watch", "cases.A04"}));
  REQUIRE(report.cases.size() == 6);
  for (const auto& one : report.cases) {
    CAPTURE(one.id, one.reason);
    CHECK(one.verdict == Verdict::pass);
  }
}
