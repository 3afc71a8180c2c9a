// Lanes, and the services that a host may lack.
#include <sandforge/plugin/lane.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;

TEST_CASE("a lane runs its tasks in order and one at a time, and knows that it does") {
  Ground ground;
  std::string order;
  const Lane other = Lane::create();
  CHECK_FALSE(ground.lane.is_current());
  ground.lane.post([&] {
    ground.lane.post([&] { order += 'c'; });
    order += ground.lane.is_current() ? 'a' : '-';
    order += other.is_current() ? '-' : 'b';
  });
  REQUIRE(ground.wait([&] { return order.size() == 3; }));
  CHECK(order == "abc");
}

TEST_CASE("copies of a lane are one lane, and the last one gives it back") {
  Ground ground;
  const int before = testing::Lane::live;
  Lane first = Lane::create();
  CHECK(testing::Lane::live == before + 1);
  {
    const Lane copy = first;
    CHECK(copy.get() == first.get());
    const Lane moved = std::move(first);
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): empty, by contract
    CHECK(moved.get() == copy.get());
    first = copy;
    CHECK(first);
  }
  CHECK(testing::Lane::live == before + 1);
  first = ground.lane;
  CHECK(testing::Lane::live == before);
}

TEST_CASE("an empty lane is none, and is current nowhere") {
  const Lane none;
  CHECK_FALSE(none);
  CHECK(none.get() == nullptr);
  CHECK_FALSE(none.is_current());
  CHECK_FALSE(Lane(nullptr));
}

TEST_CASE("what a task throws is logged, and its captures are gone before the next one") {
  Ground ground;
  const auto held = std::make_shared<int>(0);
  bool freed = false;
  ground.lane.post([held] { throw Error(Code::no_space, "disk full"); });
  ground.lane.post([&] { freed = held.use_count() == 1; });
  ground.on_lane([] {});
  CHECK(freed);
  REQUIRE(ground.host.log().size() == 1);
  const auto line = ground.host.log()[0];
  CHECK(line.level == SF_LOG_ERROR);
  CHECK(line.message == "an exception of the plugin has no caller");
  const std::vector<testing::LogField> fields = {{"where", "a task on a lane"},
                                                 {"error", "disk full"}};
  CHECK(line.fields == fields);
}

TEST_CASE("a service that the host lacks, or whose table is too short, is a typed error") {
  Ground ground;
  ground.host.absent = {SF_SERVICE_EXECUTOR};
  detail::services().fill(&ground.host);
  CHECK(thrown_by([] { Lane::create(); }) == "12 the host does not offer " SF_SERVICE_EXECUTOR
                                             ", or the plugin's manifest does not name it");

  // A host whose every table ends before its first function.
  struct Short : sf_host {
    std::size_t struct_size = sizeof(std::size_t);
  };
  static constexpr sf_host_vtbl functions = {sizeof(sf_host_vtbl), SF_ABI_MAJOR, SF_ABI_MINOR,
                                             [](sf_host* h, sf_str) noexcept -> const void* {
                                               return &static_cast<Short*>(h)->struct_size;
                                             }};
  Short host;
  host.vtbl = &functions;
  detail::Services services;
  services.fill(&host);
  CHECK(services.log == nullptr);
  CHECK(services.executor == nullptr);
  CHECK(services.paths == nullptr);
}
