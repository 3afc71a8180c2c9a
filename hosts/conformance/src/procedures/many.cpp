// D01 and D18, and the checks of the contract that run things at the same time.
#include <atomic>
#include <future>
#include <thread>

#include "at_once.hpp"
#include "procedure.hpp"

namespace sandforge::conformance {
namespace {

constexpr int kMany = 50;

SandboxConfig counting_starts(const Host& host, std::atomic<int>& hooks) {
  auto config = host.config();
  config.hooks.on_start = [&hooks](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    ++hooks;
    std::move(done)(Result<void>());
  };
  return config;
}

void starts(Host& host) {
  std::atomic<int> hooks{0};
  const auto sandbox = host.make(counting_starts(host, hooks));
  // The start asks the provider, whose lane is held until all have asked for the start: who came
  // after the end of one that is fast would rightly hear "connected".
  std::promise<void> asked;
  host.provider()->lane().post([all_asked = asked.get_future().share()] { all_asked.wait(); });
  auto all = at_once<StartedInfo>(
      kMany, [&](int, Handler<StartedInfo> done) { sandbox->async_start(std::move(done)); });
  asked.set_value();
  for (auto& one : all) {
    const auto started = one.get();
    REQUIRE(started.ok());
    CHECK(started->outcome == StartOutcome::created);
    CHECK(started->generation == 1);
  }
  CHECK(hooks == 1);
}

void commands(Host& host) {
  std::atomic<int> hooks{0};
  const auto sandbox = host.make(counting_starts(host, hooks));
  sandbox->start();
  sandbox->stop();
  auto all = at_once<CommandResult>(kMany, [&](int i, Handler<CommandResult> done) {
    sandbox->async_exec({"echo", std::to_string(i)}, {}, std::move(done));
  });
  for (int i = 0; i < kMany; ++i) {
    const auto result = all[static_cast<std::size_t>(i)].get();
    REQUIRE(result.ok());
    CHECK(result->out == std::to_string(i) + "\n");
  }
  CHECK(hooks == 2);
}

void threads(Host& host) {
  const auto sandbox = host.make();
  std::vector<std::jthread> all;  // joined also when there are no more to be had
  std::atomic<int> good{0};
  std::atomic<bool> no_room{false};  // as with a thread of the case that cannot be made
  for (int t = 0; t < 8; ++t)
    all.emplace_back([&, t] {
      try {
        sandbox->start();
        const std::string word = std::to_string(t);
        const auto result = sandbox->exec({"echo", word});
        const auto process = sandbox->spawn(argv({"echo", word}));
        const bool known = sandbox->get_process(process->id()) != nullptr;
        if (result.out == word + "\n" && known && process->wait().out == word + "\n") ++good;
      } catch (const Exception& error) {
        // The reason stays behind where it came back through the plugin.
        if (error.error().message.find("no thread could be made") != std::string::npos) {
          no_room = true;
        } else {
          findings().add(std::string("in a thread: ") + error.what());
        }
      } catch (const std::exception& error) {
        findings().add(std::string("in a thread: ") + error.what());
      }
    });
  all.clear();
  if (no_room) unverified("this machine gives the host no more threads");
  CHECK(good == 8);
}

void sandboxes_of_one_session(Host& host) {
  std::vector<std::shared_ptr<Sandbox>> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(host.make());
  auto started = at_once<StartedInfo>(8, [&](int i, Handler<StartedInfo> done) {
    all[static_cast<std::size_t>(i)]->async_start(std::move(done));
  });
  int created = 0;
  for (auto& one : started) {
    const auto result = one.get();
    REQUIRE(result.ok());
    if (result->outcome == StartOutcome::created) ++created;
  }
  CHECK(created == 1);
  CHECK(sh(*all.front(), "echo here > file").success);
  CHECK(sh(*all.back(), "cat file").out == "here\n");
}

void commands_in_hook(Host& host) {
  std::atomic<int> good{0};
  auto config = host.config();
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
  const auto sandbox = host.make(config);
  auto start = awaited<StartedInfo>();
  sandbox->async_start(std::move(start.handler));
  REQUIRE(start.future.wait_for(45s) == std::future_status::ready);
  CHECK(start.future.get().ok());
  CHECK(good == kMany);
}

void blocking_hook(Host& host) {
  std::atomic<int> good{0};
  std::thread worker;
  auto config = host.config();
  config.hooks.on_start = [&](std::shared_ptr<Sandbox> sandbox, StartedInfo, Handler<void> done) {
    auto held = std::make_shared<Handler<void>>(std::move(done));
    worker = std::thread([&good, sandbox, held] {
      for (int i = 0; i < kMany; ++i)
        if (sandbox->exec({"echo", "x"}).out == "x\n") ++good;
      std::move (*held)(Result<void>());
    });
  };
  const auto sandbox = host.make(config);
  CHECK_NOTHROW(sandbox->start());
  if (worker.joinable()) worker.join();
  CHECK(good == kMany);
}

void three_commands(Host& host) {
  const auto sandbox = host.started();
  auto all = at_once<CommandResult>(3, [&](int i, Handler<CommandResult> done) {
    sandbox->async_execute_command("sleep 0.1; echo " + std::to_string(i), {}, {}, std::move(done));
  });
  for (int i = 0; i < 3; ++i) {
    const auto result = all[static_cast<std::size_t>(i)].get();
    REQUIRE(result.ok());
    CHECK(result->out == std::to_string(i) + "\n");
  }
}

void environments(Host& host) {
  const auto sandbox = host.started();
  auto all = at_once<CommandResult>(20, [&](int i, Handler<CommandResult> done) {
    sandbox->async_execute_command("sleep 0.05; echo $N", {}, with_env({{"N", std::to_string(i)}}),
                                   std::move(done));
  });
  for (int i = 0; i < 20; ++i) {
    const auto result = all[static_cast<std::size_t>(i)].get();
    REQUIRE(result.ok());
    CHECK(result->out == std::to_string(i) + "\n");
  }
}

void three_stops(Host& host) {
  const auto sandbox = host.started();
  auto all =
      at_once<void>(3, [&](int, Handler<void> done) { sandbox->async_stop(std::move(done)); });
  for (auto& one : all)
    CHECK(one.get().ok());
  CHECK(sandbox->status() == SandboxStatus::stopped);
}

void three_starts(Host& host) {
  const auto sandbox = host.make();
  auto all = at_once<StartedInfo>(
      3, [&](int, Handler<StartedInfo> done) { sandbox->async_start(std::move(done)); });
  for (auto& one : all)
    CHECK(one.get().ok());
  CHECK(sandbox->status() == SandboxStatus::running);
  CHECK(sandbox->exec({"echo", "works"}).out == "works\n");
}

void any_order(Host& host) {
  const auto sandbox = host.make();
  std::vector<std::future<Result<StartedInfo>>> started;
  std::vector<std::future<Result<void>>> stops;
  std::vector<std::future<Result<CommandResult>>> ran;
  for (int i = 0; i < 12; ++i) {
    auto start = awaited<StartedInfo>();
    started.push_back(std::move(start.future));
    sandbox->async_start(std::move(start.handler));
    auto command = awaited<CommandResult>();
    ran.push_back(std::move(command.future));
    sandbox->async_exec({"true"}, {}, std::move(command.handler));
    auto stop = awaited<void>();
    stops.push_back(std::move(stop.future));
    sandbox->async_stop(std::move(stop.handler));
  }
  for (auto& one : started)
    CHECK(one.get().ok());
  for (auto& one : stops)
    CHECK(one.get().ok());
  // A command may meet a stop; then it says so, and never claims success for nothing.
  for (auto& one : ran) {
    const auto result = one.get();
    if (result.ok() && result->outcome == Outcome::exited) CHECK(result->exit_code == 0);
  }
  CHECK(sandbox->exec({"echo", "works"}).out == "works\n");
}

void in_order(Host& host) {
  for (const bool destroy : {false, true}) {
    CAPTURE(destroy);
    const auto sandbox = host.make(destroy ? "d" : "s");
    auto start = awaited<StartedInfo>();
    auto end = awaited<void>();
    sandbox->async_start(std::move(start.handler));
    if (destroy) {
      sandbox->async_destroy(std::move(end.handler));
    } else {
      sandbox->async_stop(std::move(end.handler));
    }
    CHECK(start.future.get().ok());
    CHECK(end.future.get().ok());
    CHECK(sandbox->status() == (destroy ? SandboxStatus::destroyed : SandboxStatus::stopped));
  }
}

}  // namespace

void add_many(Procedures& to) {
  to["many.starts"] = starts;
  to["many.commands"] = commands;
  to["many.threads"] = threads;
  to["many.sandboxes_of_one_session"] = sandboxes_of_one_session;
  to["many.commands_in_hook"] = commands_in_hook;
  to["many.blocking_hook"] = blocking_hook;
  to["many.three_commands"] = three_commands;
  to["many.environments"] = environments;
  to["many.three_stops"] = three_stops;
  to["many.three_starts"] = three_starts;
  to["many.any_order"] = any_order;
  to["many.in_order"] = in_order;
}

}  // namespace sandforge::conformance
