// D01 and D18, and the checks of the contract that run things at the same time.
#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

constexpr int kMany = 50;

template <class T>
struct Pending {
  std::future<Result<T>> future;
  Handler<T> handler;
};

template <class T>
Pending<T> pending() {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  return {std::move(future),
          Handler<T>([promise](Result<T> result) { promise->set_value(std::move(result)); })};
}

template <class T, class Start>
std::vector<std::future<Result<T>>> at_once(int count, const Start& start) {
  std::vector<std::future<Result<T>>> all;
  for (int i = 0; i < count; ++i) {
    auto one = pending<T>();
    all.push_back(std::move(one.future));
    start(i, std::move(one.handler));
  }
  return all;
}

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

TEST_CASE_METHOD(LocalFixture, "D18 a start hook runs fifty commands without a deadlock",
                 "[cases.D18]") {
  std::atomic<int> good{0};
  SandboxConfig config;
  config.id = "s";
  config.hooks.on_start = [&](std::shared_ptr<Sandbox> sandbox, StartedInfo, Handler<void> done) {
    auto left = std::make_shared<std::atomic<int>>(kMany);
    auto held = std::make_shared<Handler<void>>(std::move(done));
    for (int i = 0; i < kMany; ++i)
      sandbox->async_exec({"echo", std::to_string(i)}, {},
                          [&good, i, left, held](Result<CommandResult> result) {
                            if (result && result->out == std::to_string(i) + "\n") ++good;
                            if (--*left == 0) std::move (*held)(Result<void>());
                          });
  };
  const auto sandbox = make(config);
  auto start = pending<StartedInfo>();
  sandbox->async_start(std::move(start.handler));
  REQUIRE(start.future.wait_for(60s) == std::future_status::ready);
  CHECK(start.future.get().ok());
  CHECK(good == kMany);
}

TEST_CASE_METHOD(LocalFixture, "D18 a start hook that blocks on fifty commands, one by one",
                 "[cases.D18]") {
  std::atomic<int> good{0};
  std::thread worker;
  SandboxConfig config;
  config.id = "s";
  config.hooks.on_start = [&](std::shared_ptr<Sandbox> sandbox, StartedInfo, Handler<void> done) {
    auto held = std::make_shared<Handler<void>>(std::move(done));
    worker = std::thread([&good, sandbox, held] {
      for (int i = 0; i < kMany; ++i)
        if (sandbox->exec({"echo", "x"}).out == "x\n") ++good;
      std::move (*held)(Result<void>());
    });
  };
  const auto sandbox = make(config);
  auto start = pending<StartedInfo>();
  sandbox->async_start(std::move(start.handler));
  const bool ready = start.future.wait_for(60s) == std::future_status::ready;
  CHECK(ready);
  if (worker.joinable() && ready) worker.join();
  CHECK(good == kMany);
}

TEST_CASE_METHOD(LocalFixture, "contract A27 three commands at once are each right",
                 "[contract.A27]") {
  const auto sandbox = started();
  auto all = at_once<CommandResult>(3, [&](int i, Handler<CommandResult> done) {
    sandbox->async_execute_command("sleep 0.1; echo " + std::to_string(i), {}, {}, std::move(done));
  });
  for (int i = 0; i < 3; ++i) {
    const auto result = all[static_cast<std::size_t>(i)].get();
    REQUIRE(result.ok());
    CHECK(result->out == std::to_string(i) + "\n");
  }
}

TEST_CASE_METHOD(LocalFixture, "contract A28 commands at once do not mix their environments",
                 "[contract.A28]") {
  const auto sandbox = started();
  auto all = at_once<CommandResult>(20, [&](int i, Handler<CommandResult> done) {
    ExecOptions options;
    options.env["N"] = std::to_string(i);
    sandbox->async_execute_command("sleep 0.05; echo $N", {}, options, std::move(done));
  });
  for (int i = 0; i < 20; ++i) {
    const auto result = all[static_cast<std::size_t>(i)].get();
    REQUIRE(result.ok());
    CHECK(result->out == std::to_string(i) + "\n");
  }
}

TEST_CASE_METHOD(LocalFixture, "contract E10 three stops at once end in stopped",
                 "[contract.E10]") {
  const auto sandbox = started();
  auto all =
      at_once<void>(3, [&](int, Handler<void> done) { sandbox->async_stop(std::move(done)); });
  for (auto& one : all)
    CHECK(one.get().ok());
  CHECK(sandbox->status() == SandboxStatus::stopped);
}

TEST_CASE_METHOD(LocalFixture, "contract E11 three starts at once end in a sandbox that works",
                 "[contract.E11]") {
  const auto sandbox = make();
  auto all = at_once<StartedInfo>(
      3, [&](int, Handler<StartedInfo> done) { sandbox->async_start(std::move(done)); });
  for (auto& one : all)
    CHECK(one.get().ok());
  CHECK(sandbox->status() == SandboxStatus::running);
  CHECK(sandbox->exec({"echo", "works"}).out == "works\n");
}

TEST_CASE_METHOD(LocalFixture,
                 "D02 starts, stops and commands in any order leave a sandbox that works",
                 "[cases.D02]") {
  const auto sandbox = make();
  std::vector<std::future<Result<StartedInfo>>> starts;
  std::vector<std::future<Result<void>>> stops;
  std::vector<std::future<Result<CommandResult>>> commands;
  for (int i = 0; i < 12; ++i) {
    auto start = pending<StartedInfo>();
    starts.push_back(std::move(start.future));
    sandbox->async_start(std::move(start.handler));
    auto command = pending<CommandResult>();
    commands.push_back(std::move(command.future));
    sandbox->async_exec({"true"}, {}, std::move(command.handler));
    auto stop = pending<void>();
    stops.push_back(std::move(stop.future));
    sandbox->async_stop(std::move(stop.handler));
  }
  for (auto& one : starts)
    CHECK(one.get().ok());
  for (auto& one : stops)
    CHECK(one.get().ok());
  // A command may meet a stop; then it says so, and never claims success for nothing.
  for (auto& one : commands) {
    const auto result = one.get();
    if (result.ok() && result->outcome == Outcome::exited) CHECK(result->exit_code == 0);
  }
  CHECK(sandbox->exec({"echo", "works"}).out == "works\n");
}
