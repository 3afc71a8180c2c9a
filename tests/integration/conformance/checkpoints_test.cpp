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
  check_each_is_found(
      CROOKED_CHECKPOINTS_PLUGIN,
      {
          {"destroys checkpoints", "cases.E01", "kept.has_value()"},
          {"forgets the files", "cases.E01", "round-"},
          {"answers connected", "cases.E01", "must be created"},
          {"captures nothing", "cases.E01", "kept.has_value()"},
          {"keeps what is removed", "cases.E01", "is still there"},
          {"changes the seed", "cases.E02", "kept->created_at_ns"},
          {"says base", "cases.E02", "provenance"},
          {"starts from nothing", "cases.E02.from", "there was no error, and there must be one"},
          {"captures by itself", "cases.E03", "shelf.find(name)"},
          {"captures at the end", "cases.D02.checkpoint", "\"after\""},
      });
}
