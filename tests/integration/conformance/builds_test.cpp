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
  check_each_is_found(
      CROOKED_BUILDS_PLUGIN,
      {
          {"identity by session", "cases.E04", "renamed.identity"},
          {"says not why", "cases.E05", "\"17\""},
          {"token in the template", "cases.E07", "the secret is in the template"},
          {"fails a second cancel", "cases.E08", "it has ended"},
          {"ignores a cancel", "cases.E08", "a cancel that succeeded did not end the build"},
          {"ends at a failure", "cases.E09", "over.status is \"failed\", and must be \"ready\""},
          {"forgets who goes on", "cases.E09", "seen.size()"},
          {"asks twice", "cases.E09", "(*asked)[name]"},
          {"falls back across sizes", "cases.E12", "Provenance::family"},
          {"keeps ephemeral values", "cases.E13", "the secret is in what is told of the build"},
          {"invents a status", "cases.E15", "unknown"},
      });
}
