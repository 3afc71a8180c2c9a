// A host with one sandbox of coroutines whose functions a test gives. The plugin is compiled once,
// in coroutine_stage.cpp.
#pragma once

#include <sandforge/plugin/coroutine.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/driver.hpp>
#include "unit/plugin_layer/coroutine_fixture.hpp"

namespace sandforge::test {

// What a test lets its sandbox do, and what it saw.
class Script {
 public:
  plugin::Task<void> (*destroy)(Script&, plugin::StopToken) = nullptr;
  plugin::Task<plugin::Exit> (*run)(Script&, plugin::ProcessIo) = nullptr;
  std::atomic<int> written{0};
  std::atomic<bool> waits{false};
  std::atomic<int> off_lane{0};
  std::atomic<int> live{0};  // sandboxes
  std::string note;
  plugin::Lane lane;
  void look() {
    if (!lane.is_current()) ++off_lane;
  }
};

// The provider "scripted", whose sandboxes do what the script says.
const sf_plugin* scripted_plugin(Script& by);

// A host with one sandbox that has been started.
class CoStage {
 public:
  Script it;
  testing::Host host;
  std::optional<testing::Driver> driver;
  testing::Failure failure;

  CoStage() {
    host.loop.set_time(testing::Time::real);
    host.process.real = true;
    driver.emplace(host, scripted_plugin(it));
    REQUIRE(driver->open("scripted", "{}", failure) == SF_OK);
    REQUIRE(driver->create(nullptr, "{}", failure) == SF_OK);
    const auto started = driver->start();
    CHECK(started.done == 1);
    CHECK(started.identity == "id-1");
    CHECK_FALSE(started.late_identity);
    CHECK(started.working_directory == "/work");
  }
  // Everything is given back, and nothing ran off the lane.
  void close() {
    driver.reset();
    it.lane = plugin::Lane();
    host.join();
    host.loop.drain();
    CHECK(it.off_lane == 0);
    CHECK(it.live == 0);
    CHECK(Counted::live == 0);
    CHECK(testing::Op::live == 0);
    CHECK(testing::Lane::live == 0);
  }
  void spawn(testing::CommandLine& line, testing::Running& running) {
    REQUIRE(driver->spawn(line, running, failure) == SF_OK);
  }
};

}  // namespace sandforge::test
