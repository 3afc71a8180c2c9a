// D01 and D18, and the checks of the contract that run things at the same time.
#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "at_once.hpp"
#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;
using conformance::at_once;

namespace {

constexpr int kMany = 50;

std::size_t guests(const LocalFixture& host) {
  std::size_t count = 0;
  for (const pid_t pid : host.processes())
    if (describe({pid}).find("sandforge-guest") != std::string::npos) ++count;
  return count;
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "D01 fifty starts at once make one machine and share its result",
                 "[cases.D01]") {
  std::atomic<int> hooks{0};
  SandboxConfig config;
  config.id = "s";
  config.hooks.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    ++hooks;
    std::move(done)(Result<void>());
  };
  const auto sandbox = make(config);
  auto all = at_once<StartedInfo>(
      kMany, [&](int, Handler<StartedInfo> done) { sandbox->async_start(std::move(done)); });
  for (auto& one : all) {
    const auto started = one.get();
    REQUIRE(started.ok());
    CHECK(started->outcome == StartOutcome::created);
    CHECK(started->generation == 1);
  }
  CHECK(hooks == 1);
  CHECK(guests(*this) == 1);
}

TEST_CASE_METHOD(LocalFixture, "D01 fifty commands at once start a stopped sandbox once",
                 "[cases.D01]") {
  std::atomic<int> hooks{0};
  SandboxConfig config;
  config.id = "s";
  config.hooks.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    ++hooks;
    std::move(done)(Result<void>());
  };
  const auto sandbox = make(config);
  sandbox->start();
  sandbox->stop();
  CHECK(nothing_runs());
  auto all = at_once<CommandResult>(kMany, [&](int i, Handler<CommandResult> done) {
    sandbox->async_exec({"echo", std::to_string(i)}, {}, std::move(done));
  });
  for (int i = 0; i < kMany; ++i) {
    const auto result = all[static_cast<std::size_t>(i)].get();
    REQUIRE(result.ok());
    CHECK(result->out == std::to_string(i) + "\n");
  }
  CHECK(hooks == 2);
  CHECK(guests(*this) == 1);
}

TEST_CASE_METHOD(LocalFixture, "D01 threads that start, run and list at the same time agree",
                 "[cases.D01]") {
  const auto sandbox = make();
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      sandbox->start();
      const std::string word = std::to_string(t);
      const auto result = sandbox->exec({"echo", word});
      const auto process = sandbox->spawn(argv({"echo", word}));
      const bool known = sandbox->get_process(process->id()) != nullptr;
      if (result.out == word + "\n" && known && process->wait().out == word + "\n") ++good;
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(good == 8);
  CHECK(guests(*this) == 1);
}

TEST_CASE_METHOD(LocalFixture, "D01 sandboxes of one session share its machine", "[cases.D01]") {
  std::vector<std::shared_ptr<Sandbox>> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(make());
  auto starts = at_once<StartedInfo>(8, [&](int i, Handler<StartedInfo> done) {
    all[static_cast<std::size_t>(i)]->async_start(std::move(done));
  });
  int created = 0;
  for (auto& one : starts) {
    const auto started = one.get();
    REQUIRE(started.ok());
    if (started->outcome == StartOutcome::created) ++created;
  }
  CHECK(created == 1);
  CHECK(guests(*this) == 1);
  CHECK(sh(*all.front(), "echo here > file").success);
  CHECK(sh(*all.back(), "cat file").out == "here\n");
}
