// What the suite finds of networks that are kept apart, and of those that are not.
#include <cstdlib>

#include "fixture.hpp"

using namespace conformance_test;

namespace {

conformance::CaseResult judged(const char* id, bool apart) {
  auto wanted = request(NETWORKS_PLUGIN, {id});
  wanted.subject.options.set("root", "${SANDFORGE_CASE_DIR}/tmp/root");
  wanted.subject.options.set("apart", apart);
  const auto report = conformance::run(wanted);
  REQUIRE(report.cases.size() == 1);
  return report.cases[0];
}

}  // namespace

TEST_CASE("networks that are kept apart pass, and those that are not fail") {
  if (std::system("unshare --net true 2>/dev/null || unshare --map-root-user --net true") != 0) {
    WARN("SKIPPED: no network of one's own can be had here");
    return;
  }
  struct Row {
    const char* id;
    bool apart;
    Verdict verdict;
    const char* because;
  };
  for (const auto& row : {
           Row{"cases.G_network_none", true, Verdict::pass, ""},
           Row{"cases.G_network_none", false, Verdict::fail, "listener->reached()"},
           Row{"cases.G_network_isolated", false, Verdict::fail, "listener->reached()"},
           Row{"cases.G_network_isolated", true, Verdict::unverified, "names nothing to reach"},
           Row{"cases.G_network_private", false, Verdict::pass, ""},
           Row{"cases.G_network_private", true, Verdict::fail, "reaches(*one, *other)"},
       }) {
    const auto one = judged(row.id, row.apart);
    CAPTURE(row.id, row.apart, one.reason);
    CHECK(one.verdict == row.verdict);
    CHECK(one.reason.find(row.because) != std::string::npos);
  }
}
