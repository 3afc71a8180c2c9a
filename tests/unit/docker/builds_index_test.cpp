// Which builds are kept for a later host.
#include <catch2/catch.hpp>

#include "builds_index.hpp"

using sandforge::docker::index_builds;
namespace json = sandforge::json;
using Ids = std::vector<std::string>;

TEST_CASE("the newest builds are kept, and nothing is left of those that make room") {
  const auto before = json::parse(R"(["c", "b", 7, "a"])").value;
  auto index = index_builds({"d"}, before, 3);
  CHECK(index.kept == Ids{"d", "c", "b"});
  CHECK(index.dropped == Ids{"a"});
  // One that was built again, and one whose end another write of the index has lost.
  index = index_builds({"b", "x"}, before, 4);
  CHECK(index.kept == Ids{"b", "x", "c", "a"});
  CHECK(index.dropped.empty());
  for (const char* damaged : {"null", "{}", "7"}) {
    index = index_builds({"d"}, json::parse(damaged).value, 3);
    CHECK(index.kept == Ids{"d"});
    CHECK(index.dropped.empty());
  }
}
