// A host with one sandbox in the blocking style whose functions a test gives. The plugin is
// compiled once, in stage.cpp.
#pragma once

#include <sandforge/plugin/sandbox.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/driver.hpp>

namespace sandforge::test {

// What a test lets its sandbox do. Everything runs on pool threads.
class Play {
 public:
  std::function<void(plugin::Sandbox&, plugin::Starting&)> start = [](plugin::Sandbox&,
                                                                      plugin::Starting&) {};
  std::function<void(plugin::Sandbox&, plugin::StopToken)> stop = [](plugin::Sandbox&,
                                                                     plugin::StopToken) {};
  std::function<plugin::Exit(plugin::Sandbox&, plugin::ProcessIo)> run;
  std::function<void(plugin::Sandbox&, plugin::Spawn&)> spawn;
  std::atomic<bool> began{false};
  plugin::Context context;
};

// The provider "player", whose sandboxes do what the play that is on says.
const sf_plugin* player_plugin(Play& on);

class Stage {
 public:
  Play it;
  testing::Host host;
  testing::Context context;
  std::optional<testing::Driver> driver;
  testing::Failure failure;

  Stage() {
    host.loop.set_time(testing::Time::real);
    host.process.real = true;
    driver.emplace(host, player_plugin(it));
    REQUIRE(driver->open("player", "{}", failure) == SF_OK);
    REQUIRE(driver->create(&context, "{}", failure) == SF_OK);
  }
  ~Stage() {
    it.context = plugin::Context();
    driver.reset();
    host.join();
    host.loop.drain();
    CHECK(testing::Lane::live == 0);
    CHECK(testing::Op::live == 0);
    CHECK(testing::Process::live == 0);
    CHECK(context.refs == 1);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Output may come on a pool thread: what the consumer keeps is looked at only after done.
  std::unique_ptr<testing::Running> spawn(testing::CommandLine line, bool grant_back = true) {
    auto running = std::make_unique<testing::Running>(line.window);
    running->grant_back = grant_back;
    REQUIRE(driver->spawn(line, *running, failure) == SF_OK);
    return running;
  }
  void end(testing::Running& running) {
    REQUIRE(driver->wait([&] { return running.done > 0; }));
    CHECK(running.rules_kept());
    CHECK_FALSE(running.disorder);
    if (running.process != nullptr) running.release();
  }
};

}  // namespace sandforge::test
