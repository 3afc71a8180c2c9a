// Calls from many threads at once.
#include <random>
#include <thread>

#include "fixture.hpp"

namespace sandforge {
namespace {

// Runs work(i) on n threads that begin together.
void on_threads(int n, const std::function<void(int)>& work) {
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      while (!go)
        std::this_thread::yield();
      work(i);
    });
  go = true;
  for (auto& thread : threads)
    thread.join();
}

}  // namespace

TEST_CASE("many threads run commands on a sandbox that nobody started") {
  Fixture f;
  constexpr int kEach = 50;
  std::atomic<int> good{0};
  on_threads(8, [&](int t) {
    for (int i = 0; i < kEach; ++i) {
      const std::string text = std::to_string(t) + "-" + std::to_string(i);
      if (f.sandbox->execute_command("echo " + text).out == text + "\n") ++good;
    }
  });
  CHECK(good == 8 * kEach);
  CHECK(f.world->machine_count() == 1);
  CHECK(f.world->counts().starts == 1);
}

TEST_CASE("many threads start at once: one machine") {
  Fixture f;
  std::atomic<int> created{0};
  std::atomic<int> connected{0};
  on_threads(50, [&](int) {
    const auto outcome = f.sandbox->start().outcome;
    if (outcome == StartOutcome::created) ++created;
    if (outcome == StartOutcome::connected) ++connected;
  });
  CHECK(created >= 1);
  CHECK(created + connected == 50);
  CHECK(f.world->counts().starts == 1);
}

TEST_CASE("life cycle calls, commands and looks in any order from many threads") {
  Fixture f;
  f.world->has_processes = true;
  std::atomic<int> strange{0};
  on_threads(8, [&](int t) {
    std::minstd_rand random(static_cast<unsigned>(t));
    for (int i = 0; i < 60; ++i) {
      try {
        switch (random() % 9) {
          case 0:
            f.sandbox->start();
            break;
          case 1:
            f.sandbox->stop();
            break;
          case 2:
            if (random() % 4 == 0) f.sandbox->destroy();
            break;
          case 3:
            f.sandbox->info();
            f.sandbox->instructions();
            break;
          case 4:
            f.sandbox->list_processes();
            break;
          case 5:
            f.sandbox->spawn(shell("echo x"))->wait();
            break;
          case 6:
            f.sandbox->set_env([&](EnvMap env) {
              env["N"] = std::to_string(i);
              return env;
            });
            break;
          case 7: {
            const auto clone = f.sandbox->clone({}).value();
            clone->status();
            break;
          }
          default:
            if (f.sandbox->execute_command("echo y").out != "y\n") ++strange;
        }
        f.sandbox->status();
        f.sandbox->sandbox_id();
        f.sandbox->started();
      } catch (const SandboxDestroyedError&) {
        // Another thread destroyed it just now.
      } catch (const Exception& e) {
        if (e.error().code != Status::conflict) ++strange;
      }
    }
  });
  CHECK(strange == 0);
  CHECK(f.sandbox->start().generation >= 1);
  CHECK(f.sandbox->execute_command("echo end").out == "end\n");
  CHECK(f.world->machine_count() == 1);
}

TEST_CASE("one process, many threads that read, write, wait and stop") {
  Fixture f;
  std::stop_source stop;
  SpawnOptions options;
  options.stop = stop.get_token();
  options.timeout = std::chrono::minutes(10);
  const auto process = f.sandbox->spawn(shell("cat"), options);
  const auto inside = f.world->process(0);
  std::atomic<int> same{0};
  on_threads(8, [&](int t) {
    for (int i = 0; i < 20; ++i) {
      inside->out("x");
      process->out();
      process->running();
      process->grant(1);
      process->async_write("y", [](const Result<void>&) {});
    }
    if (t == 0) stop.request_stop();
    if (process->wait().outcome == Outcome::cancelled) ++same;
  });
  CHECK(same == 8);
}

TEST_CASE("stops race with ends") {
  Fixture f;
  std::atomic<int> good{0};
  on_threads(4, [&](int) {
    for (int i = 0; i < 50; ++i) {
      std::stop_source stop;
      ExecOptions options;
      options.stop = stop.get_token();
      options.timeout = std::chrono::minutes(10);
      auto run = later<CommandResult>(
          [&](auto done) { f.sandbox->async_exec({"true"}, options, std::move(done)); });
      stop.request_stop();
      const auto outcome = get(run)->outcome;
      if (outcome == Outcome::exited || outcome == Outcome::cancelled) ++good;
    }
  });
  CHECK(good == 200);
}

TEST_CASE("sandboxes are dropped while their commands run") {
  Runtime runtime;
  auto world = std::make_shared<fake::World>(runtime);
  std::atomic<int> ended{0};
  on_threads(4, [&](int) {
    for (int i = 0; i < 25; ++i) {
      auto sandbox = Sandbox::create(runtime, world->provider(), {}).value();
      sandbox->async_exec({"echo", "x"}, {}, [&](Result<CommandResult> r) {
        if (r.ok() && r->success) ++ended;
      });
    }
  });
  CHECK(eventually([&] { return ended == 100; }));
}

}  // namespace sandforge
