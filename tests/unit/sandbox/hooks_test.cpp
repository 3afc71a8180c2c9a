#include <thread>

#include "fixture.hpp"

namespace sandforge {
namespace {

void succeed(Handler<void> done) {
  std::move(done)(Result<void>());
}

}  // namespace

TEST_CASE("the onStart hook runs once per start, with what was booted, before start answers") {
  SandboxConfig config;
  std::vector<StartedInfo> seen;
  config.hooks.on_start = [&](std::shared_ptr<Sandbox> sandbox, StartedInfo info,
                              Handler<void> done) {
    CHECK(sandbox->status() == SandboxStatus::running);
    seen.push_back(info);
    succeed(std::move(done));
  };
  Fixture f(config);
  f.sandbox->start();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].outcome == StartOutcome::created);
  CHECK_FALSE(seen[0].setup_unfinished);
  f.sandbox->start();  // connected at once: nothing booted
  CHECK(seen.size() == 1);
  f.sandbox->stop();
  f.sandbox->execute_command("true");  // a lazy start, too
  REQUIRE(seen.size() == 2);
  CHECK(seen[1].outcome == StartOutcome::connected);
  CHECK_FALSE(seen[1].setup_unfinished);
}

TEST_CASE("an onStart hook that fails fails the start, the retry knows that set-up is unfinished") {
  SandboxConfig config;
  int runs = 0;
  std::vector<bool> unfinished;
  const int kind = GENERATE(0, 1, 2);
  config.hooks.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo info, Handler<void> done) {
    unfinished.push_back(info.setup_unfinished);
    if (++runs > 1) return succeed(std::move(done));
    if (kind == 0) return std::move(done)(Error(Status::no_space, "disk full"));
    if (kind == 1) throw std::runtime_error("disk full");
  };  // kind 2: drops the handler
  Fixture f(config);
  const Error error = error_of([&] { f.sandbox->start(); });
  const std::string cause[] = {"disk full", "the onStart hook threw: disk full",
                               "the onStart hook dropped its handler without an answer"};
  CHECK(error.message == "Sandbox 's1' onStart hook failed: " + cause[kind]);
  CHECK(error.reason == "hook.on_start");
  CHECK(error.code == (kind == 0 ? Status::no_space : Status::internal));
  REQUIRE(error.details.find("cause") != nullptr);
  CHECK(error.details.find("cause")->find("message")->as_string() == cause[kind]);
  CHECK(f.sandbox->status() == SandboxStatus::error);
  CHECK(f.sandbox->info().error == error.message);

  CHECK(f.sandbox->start().setup_unfinished);
  CHECK(unfinished == std::vector<bool>{false, true});
  f.sandbox->stop();
  CHECK_FALSE(f.sandbox->start().setup_unfinished);
}

TEST_CASE("a machine provisioned anew owes nothing to the hook of the last one") {
  SandboxConfig config;
  int runs = 0;
  config.hooks.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    if (++runs > 1) return succeed(std::move(done));
    std::move(done)(Error(Status::internal, "no"));
  };
  Fixture f(config);
  error_of([&] { f.sandbox->start(); });
  f.sandbox->destroy();
  CHECK_FALSE(f.sandbox->start().setup_unfinished);
}

TEST_CASE("commands from inside an onStart hook run without deadlock") {
  SandboxConfig config;
  std::atomic<int> good{0};
  config.hooks.on_start = [&](std::shared_ptr<Sandbox> sandbox, StartedInfo, Handler<void> done) {
    // A blocking hook on its own thread, as a blocking provider would have it.
    std::thread([&good, sandbox, done = std::move(done)]() mutable {
      for (int i = 0; i < 50; ++i)
        if (sandbox->execute_command("echo x").out == "x\n") ++good;
      // Running already, so this does not wait for the start that waits for this hook.
      if (sandbox->start().outcome == StartOutcome::connected) ++good;
      succeed(std::move(done));
    }).detach();
  };
  Fixture f(config);
  CHECK(f.sandbox->execute_command("echo outer").out == "outer\n");
  CHECK(good == 51);
  CHECK(f.world->counts().starts == 1);
}

TEST_CASE("who joined a start gets its answer after the hook") {
  SandboxConfig config;
  std::promise<Handler<void>> given;
  config.hooks.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    given.set_value(std::move(done));
  };
  Fixture f(config);
  auto a = later<StartedInfo>([&](auto done) { f.sandbox->async_start(std::move(done)); });
  auto stop = later<void>([&](auto done) { f.sandbox->async_stop(std::move(done)); });
  auto handler = given.get_future().get();
  CHECK(f.sandbox->status() == SandboxStatus::running);
  CHECK(is_open(a));
  // The hook's commands still go through, although a stop waits.
  CHECK(f.sandbox->execute_command("echo 1").out == "1\n");
  CHECK(f.world->counts().stops == 0);
  succeed(std::move(handler));
  CHECK(get(a).ok());
  CHECK(get(stop).ok());
  CHECK(f.sandbox->status() == SandboxStatus::stopped);
}

TEST_CASE("a machine that a hook's command finds gone fails the start") {
  SandboxConfig config;
  std::shared_ptr<fake::World> world;
  const bool hook_tells = GENERATE(true, false);
  config.hooks.on_start = [&](std::shared_ptr<Sandbox> sandbox, StartedInfo, Handler<void> done) {
    world->destroy_from_outside("s1");
    sandbox->async_exec({"true"}, {},
                        [hook_tells, done = std::move(done)](Result<CommandResult> r) mutable {
                          if (hook_tells) return std::move(done)(std::move(r).error());
                          succeed(std::move(done));
                        });
  };
  Fixture f(config);
  world = f.world;
  CHECK_THROWS_AS(f.sandbox->start(), SandboxDestroyedError);
  CHECK(f.sandbox->status() == SandboxStatus::pending);
  CHECK_FALSE(f.sandbox->sandbox_id().has_value());
}

TEST_CASE("a machine that a hook's command finds stopped is not started behind the hook") {
  SandboxConfig config;
  std::shared_ptr<fake::World> world;
  Status seen = Status::ok;
  config.hooks.on_start = [&](std::shared_ptr<Sandbox> sandbox, StartedInfo, Handler<void> done) {
    if (seen != Status::ok) return succeed(std::move(done));
    world->stop_from_outside("s1");
    sandbox->async_exec({"true"}, {},
                        [&seen, done = std::move(done)](Result<CommandResult> r) mutable {
                          seen = r.error().code;
                          std::move(done)(std::move(r).error());
                        });
  };
  Fixture f(config);
  world = f.world;
  CHECK(error_of([&] { f.sandbox->start(); }).reason == "hook.on_start");
  CHECK(seen == Status::conflict);
  CHECK(f.sandbox->start().setup_unfinished);
}

TEST_CASE("onStop and onDestroy run before the provider's part") {
  SandboxConfig config;
  std::vector<std::string> order;
  std::shared_ptr<fake::World> world;
  config.hooks.on_stop = [&](std::shared_ptr<Sandbox> sandbox, Handler<void> done) {
    order.push_back("stop " + std::to_string(world->counts().stops) + " " +
                    std::string(to_string(sandbox->status())));
    succeed(std::move(done));
  };
  config.hooks.on_destroy = [&](std::shared_ptr<Sandbox> sandbox, Handler<void> done) {
    order.push_back("destroy " + std::to_string(world->counts().destroys) + " " +
                    std::string(to_string(sandbox->status())));
    succeed(std::move(done));
  };
  Fixture f(config);
  world = f.world;
  f.sandbox->start();
  f.sandbox->stop();
  f.sandbox->destroy();
  CHECK(order == std::vector<std::string>{"stop 0 stopping", "destroy 0 destroying"});
  f.sandbox->destroy();
  CHECK(order.size() == 2);
}

TEST_CASE("a teardown hook that fails fails its call and leaves the machine") {
  SandboxConfig config;
  bool fail = true;
  const auto hook = [&](std::shared_ptr<Sandbox>, Handler<void> done) {
    if (!fail) return succeed(std::move(done));
    std::move(done)(Error(Status::internal, "not saved"));
  };
  config.hooks.on_stop = hook;
  config.hooks.on_destroy = hook;
  Fixture f(config);
  f.sandbox->start();
  CHECK(error_of([&] { f.sandbox->stop(); }).message == "not saved");
  CHECK(f.sandbox->status() == SandboxStatus::error);
  CHECK(error_of([&] { f.sandbox->destroy(); }).message == "not saved");
  CHECK(f.world->counts().stops == 0);
  CHECK(f.world->counts().destroys == 0);
  CHECK(f.world->machine_count() == 1);
  fail = false;
  f.sandbox->destroy();
  CHECK(f.world->machine_count() == 0);
}

TEST_CASE("a teardown hook may run commands, and they start nothing") {
  SandboxConfig config;
  std::string output;
  Status refused = Status::ok;
  std::shared_ptr<fake::World> world;
  config.hooks.on_stop = [&](std::shared_ptr<Sandbox> sandbox, Handler<void> done) {
    sandbox->async_exec(
        {"echo", "bye"}, {}, [&, sandbox, done = std::move(done)](Result<CommandResult> r) mutable {
          output = r->out;
          world->stop_from_outside("s1");
          sandbox->async_exec({"true"}, {},
                              [&refused, done = std::move(done)](Result<CommandResult> s) mutable {
                                refused = s.error().code;
                                succeed(std::move(done));
                              });
        });
  };
  Fixture f(config);
  world = f.world;
  f.sandbox->start();
  f.sandbox->stop();
  CHECK(output == "bye\n");
  CHECK(refused == Status::conflict);
  CHECK(f.world->counts().starts == 1);
  CHECK(f.sandbox->status() == SandboxStatus::stopped);
}

TEST_CASE("a stop of a sandbox that never started runs its hook, whose commands are refused") {
  SandboxConfig config;
  Status refused = Status::ok;
  config.hooks.on_stop = [&](std::shared_ptr<Sandbox> sandbox, Handler<void> done) {
    sandbox->async_exec({"true"}, {},
                        [&refused, done = std::move(done)](Result<CommandResult> r) mutable {
                          refused = r.error().code;
                          succeed(std::move(done));
                        });
  };
  Fixture f(config);
  f.sandbox->stop();
  CHECK(refused == Status::conflict);
  CHECK(f.sandbox->status() == SandboxStatus::stopped);
  CHECK(f.world->counts().stops == 1);
  CHECK(f.world->counts().starts == 0);
}

TEST_CASE("set_on_start composes hooks for later starts") {
  SandboxConfig config;
  std::vector<std::string> order;
  config.hooks.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    order.push_back("first");
    succeed(std::move(done));
  };
  Fixture f(config);
  f.sandbox->start();
  f.sandbox->set_on_start([&](StartHook before) -> StartHook {
    return
        [&order, before](std::shared_ptr<Sandbox> sandbox, StartedInfo info, Handler<void> done) {
          order.push_back("wrap");
          before(std::move(sandbox), std::move(info), std::move(done));
        };
  });
  CHECK(order == std::vector<std::string>{"first"});
  f.sandbox->stop();
  f.sandbox->start();
  CHECK(order == std::vector<std::string>{"first", "wrap", "first"});
  f.sandbox->set_on_start([](StartHook) { return StartHook(); });
  f.sandbox->stop();
  f.sandbox->start();
  CHECK(order.size() == 3);
}

TEST_CASE("a template is asked for only before a start without a machine, and never in the way") {
  SandboxConfig config;
  int asked = 0;
  std::optional<Error> error;
  config.template_document = [&](Handler<std::optional<std::string>> done) {
    ++asked;
    if (error) return std::move(done)(*error);
    std::move(done)(std::optional<std::string>("{\"ops\":[]}"));
  };
  Fixture f(config);
  f.sandbox->start();
  CHECK(f.world->starts().back().template_document == "{\"ops\":[]}");
  f.sandbox->stop();
  f.sandbox->start();
  CHECK(asked == 1);
  CHECK_FALSE(f.world->starts().back().template_document.has_value());

  error = Error(Status::unavailable, "head not resolved");
  f.sandbox->destroy();
  const StartedInfo info = f.sandbox->start();
  CHECK(asked == 2);
  CHECK_FALSE(f.world->starts().back().template_document.has_value());
  CHECK(info.warnings ==
        std::vector<std::string>{"starting without the template: head not resolved"});
}

}  // namespace sandforge
