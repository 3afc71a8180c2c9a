// Time limits and cancellation.
#include "fixture.hpp"

namespace sandforge {
namespace {

using std::chrono::milliseconds;

ExecOptions limited(std::int64_t ms, std::int64_t grace = 10) {
  ExecOptions options;
  options.timeout = milliseconds(ms);
  options.grace = milliseconds(grace);
  return options;
}

std::future<Result<CommandResult>> run_later(Sandbox& sandbox, ExecOptions options) {
  return later<CommandResult>(
      [&](auto done) { sandbox.async_exec({"sleep"}, std::move(options), std::move(done)); });
}

}  // namespace

TEST_CASE("a command that takes too long is timed out with what it wrote") {
  Fixture f;
  f.sandbox->start();
  f.world->set_program([](const std::shared_ptr<fake::Process>& p) {
    p->start();
    p->out("partial");
    Exit exit;
    exit.outcome = Outcome::timed_out;
    exit.signal = 15;
    exit.killed = true;
    p->end(exit);
  });
  const auto r = f.sandbox->exec({"program"}, limited(600'000));
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.timed_out);
  CHECK(r.exit_code == 124);
  CHECK(r.signal == 15);
  CHECK(r.killed);
  CHECK_FALSE(r.success);
  CHECK(r.out == "partial");
  f.world->set_program(fake::basic_program);
  CHECK(f.sandbox->execute_command("true").success);
}

TEST_CASE("no limit: zero, absent, and more than any clock holds") {
  SandboxConfig config;
  std::optional<milliseconds> timeout;
  SECTION("absent") {}
  SECTION("zero") {
    timeout = milliseconds(0);
  }
  SECTION("zero over the sandbox's") {
    config.timeout = milliseconds(1);
    timeout = milliseconds(0);
  }
  SECTION("2^31") {
    timeout = milliseconds(std::int64_t{1} << 31);
  }
  SECTION("the largest") {
    timeout = milliseconds::max();
  }
  Fixture f(config);
  ExecOptions options;
  options.timeout = timeout;
  CHECK(f.sandbox->exec({"true"}, options).success);
  const auto sent = f.world->process(0)->command.timeout;
  if (!timeout || timeout->count() == 0) {
    CHECK(sent.count() == 0);
  } else {
    CHECK(sent > milliseconds((std::int64_t{1} << 31) - 600'000));
  }
}

TEST_CASE("a limit of one millisecond is a timeout, wherever it strikes") {
  Fixture f;
  const auto r = f.sandbox->exec({"sleep"}, limited(1));
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.exit_code == 124);
}

TEST_CASE("the sandbox's limit holds for commands, not for what is spawned") {
  SandboxConfig config;
  config.timeout = milliseconds(40);
  Fixture f(config);
  CHECK(f.sandbox->execute_command("sleep").timed_out);
  const auto process = f.sandbox->spawn(shell("sleep"));
  CHECK(f.world->processes().back()->command.timeout.count() == 0);
  CHECK(process->kill());
}

TEST_CASE("one deadline covers the start, too") {
  Fixture f;
  fake::StartScript script;
  script.hold = true;
  f.world->next_start(script);
  const auto r = f.sandbox->exec({"true"}, limited(30));
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.exit_code == 124);
  CHECK_FALSE(r.command_may_have_started);
  CHECK(r.execution_time.count() == 0);
  REQUIRE(r.error.has_value());
  CHECK(r.error->code == Status::timeout);
  // The start itself goes on.
  f.world->release();
  CHECK(f.sandbox->start().generation == 1);
  CHECK(f.world->counts().spawns == 0);
}

TEST_CASE("the provider gets what is left of the limit") {
  Fixture f;
  fake::StartScript script;
  script.hold = true;
  f.world->next_start(script);
  auto run = later<CommandResult>(
      [&](auto done) { f.sandbox->async_exec({"true"}, limited(600'000), std::move(done)); });
  REQUIRE(f.world->wait_held());
  std::this_thread::sleep_for(milliseconds(20));  // time passes: that is what is measured
  f.world->release();
  CHECK(get(run)->success);
  const auto sent = f.world->process(0)->command.timeout;
  CHECK(sent <= milliseconds(600'000 - 20));
  CHECK(sent > milliseconds(300'000));
}

TEST_CASE("a provider that does not end a command in time is given up") {
  Fixture f;
  f.sandbox->start();
  f.world->enforce_timeouts = false;
  bool starts = true;
  SECTION("it had started") {}
  SECTION("nobody knows whether it started") {
    starts = false;
  }
  f.world->set_program([starts](const std::shared_ptr<fake::Process>& p) {
    p->ignores_cancel = true;
    if (starts) p->start();
    if (starts) p->out("partial");
  });
  const auto begin = std::chrono::steady_clock::now();
  const auto r = f.sandbox->exec({"lost"}, limited(20));
  CHECK(std::chrono::steady_clock::now() - begin >= milliseconds(2000));
  CHECK(f.world->process(0)->cancels() == 1);
  CHECK(r.outcome == (starts ? Outcome::timed_out : Outcome::transport_lost));
  CHECK(r.out == (starts ? "partial" : ""));
  CHECK(r.command_may_have_started);
  REQUIRE(r.error.has_value());
  CHECK(r.error->reason == "command.lost");
  // What comes later is nobody's business.
  f.world->process(0)->exit(0);
  f.world->set_program(fake::basic_program);
  CHECK(f.sandbox->execute_command("echo next").out == "next\n");
}

TEST_CASE("a stop that was asked for before: nothing starts") {
  Fixture f;
  std::stop_source stop;
  stop.request_stop();
  ExecOptions options;
  options.stop = stop.get_token();
  const auto r = f.sandbox->exec({"true"}, options);
  CHECK(r.outcome == Outcome::cancelled);
  CHECK_FALSE(r.success);
  CHECK_FALSE(r.exit_code.has_value());
  CHECK_FALSE(r.command_may_have_started);
  SpawnOptions spawn;
  spawn.stop = stop.get_token();
  CHECK_THROWS_AS(f.sandbox->spawn(shell("true"), spawn), SandboxAbortError);
  CHECK(f.world->counts().starts == 0);
}

TEST_CASE("a stop during the start: the command is left out, the start goes on") {
  Fixture f;
  fake::StartScript script;
  script.hold = true;
  f.world->next_start(script);
  std::stop_source stop;
  ExecOptions options;
  options.stop = stop.get_token();
  auto run = run_later(*f.sandbox, options);
  REQUIRE(f.world->wait_held());
  stop.request_stop();
  const auto r = get(run).value();
  CHECK(r.outcome == Outcome::cancelled);
  CHECK_FALSE(r.command_may_have_started);
  f.world->release();
  f.sandbox->start();
  CHECK(f.world->counts().spawns == 0);
}

TEST_CASE("a stop from the first output ends the command at once with what it wrote") {
  Fixture f;
  f.sandbox->start();
  f.world->set_program([](const std::shared_ptr<fake::Process>& p) {
    p->start();
    p->out("first");
  });
  std::stop_source stop;
  ExecOptions options;
  options.stop = stop.get_token();
  options.on_stdout = [&](std::string_view) { stop.request_stop(); };
  const auto r = f.sandbox->exec({"program"}, options);
  CHECK(r.outcome == Outcome::cancelled);
  CHECK(r.out == "first");
  CHECK(r.command_may_have_started);
  CHECK_FALSE(r.exit_code.has_value());
  CHECK(f.world->process(0)->cancels() == 1);
}

TEST_CASE("a cancelled command whose provider only saw its own signal is cancelled") {
  Fixture f;
  f.sandbox->start();
  f.world->set_program([](const std::shared_ptr<fake::Process>& p) {
    p->ignores_cancel = true;
    p->start();
    p->out("x");
  });
  std::stop_source stop;
  ExecOptions options;
  options.stop = stop.get_token();
  options.on_stdout = [&](std::string_view) { stop.request_stop(); };
  auto run = run_later(*f.sandbox, options);
  const auto p = f.world->process(0);
  REQUIRE(eventually([&] { return p->cancels() == 1; }));
  const bool by_itself = GENERATE(false, true);
  if (by_itself) {
    p->exit(0);
  } else {
    p->signaled(15, true);
  }
  CHECK(get(run)->outcome == (by_itself ? Outcome::exited : Outcome::cancelled));
}

TEST_CASE("a stop after the end has no effect") {
  Fixture f;
  std::stop_source stop;
  ExecOptions options;
  options.stop = stop.get_token();
  CHECK(f.sandbox->exec({"true"}, options).success);
  stop.request_stop();
  CHECK(f.sandbox->execute_command("true").success);
  CHECK(f.world->process(0)->cancels() == 0);
}

TEST_CASE("a cancelled command whose provider is lost ends within a bound") {
  Fixture f;
  f.sandbox->start();
  f.world->set_program([](const std::shared_ptr<fake::Process>& p) {
    p->ignores_cancel = true;
    p->start();
    p->out("x");
  });
  std::stop_source stop;
  ExecOptions options;
  options.grace = milliseconds(10);
  options.stop = stop.get_token();
  options.on_stdout = [&](std::string_view) { stop.request_stop(); };
  const auto r = f.sandbox->exec({"lost"}, options);
  CHECK(r.outcome == Outcome::cancelled);
  CHECK(r.error->reason == "command.lost");
}

TEST_CASE("commands that run when the sandbox is destroyed end as destroyed") {
  Fixture f;
  f.sandbox->start();
  ExecOptions options;
  auto run = run_later(*f.sandbox, options);
  const auto p = f.world->process(0);
  REQUIRE(p != nullptr);
  SECTION("the provider says that it ended them") {
    f.world->next_destroy(std::nullopt, true);
    auto destroy = later<void>([&](auto done) { f.sandbox->async_destroy(std::move(done)); });
    REQUIRE(f.world->wait_held());
    p->signaled(15, true);
    CHECK(get(run)->outcome == Outcome::destroyed);
    f.world->release();
    CHECK(get(destroy).ok());
  }
  SECTION("the connection to it ends with the machine") {
    f.world->next_destroy(std::nullopt, true);
    auto destroy = later<void>([&](auto done) { f.sandbox->async_destroy(std::move(done)); });
    REQUIRE(f.world->wait_held());
    p->start();
    p->fail(Error(Status::transport_lost, "the connection was reset"));
    const auto r = get(run).value();
    CHECK(r.outcome == Outcome::destroyed);
    CHECK(r.error->code == Status::gone);
    CHECK_FALSE(r.exit_code.has_value());
    f.world->release();
    CHECK(get(destroy).ok());
  }
  SECTION("the provider says nothing more") {
    f.sandbox->destroy();
    const auto r = get(run).value();
    CHECK(r.outcome == Outcome::destroyed);
    CHECK(r.error->reason == "command.lost");
  }
  SECTION("a stop is no destroy") {
    f.world->next_stop(std::nullopt, true);
    auto stop = later<void>([&](auto done) { f.sandbox->async_stop(std::move(done)); });
    REQUIRE(f.world->wait_held());
    p->signaled(15, true);
    const auto r = get(run).value();
    CHECK(r.outcome == Outcome::signaled);
    CHECK(r.exit_code == 143);
    f.world->release();
    CHECK(get(stop).ok());
  }
}

TEST_CASE("many deadlines, each at its time") {
  Fixture f;
  f.sandbox->start();
  f.world->enforce_timeouts = false;
  f.world->set_program([](const std::shared_ptr<fake::Process>&) {});
  std::vector<std::future<Result<CommandResult>>> all;
  for (int i = 0; i < 20; ++i)
    all.push_back(run_later(*f.sandbox, limited(20 - i, 0)));
  all.push_back(run_later(*f.sandbox, limited(600'000, 0)));
  for (int i = 0; i < 20; ++i) {
    // Where this machine is slow, some ended before they were sent.
    const auto outcome = get(all[i])->outcome;
    CHECK((outcome == Outcome::transport_lost || outcome == Outcome::timed_out));
  }
  CHECK(is_open(all[20]));
  f.world->processes().back()->exit(3);
  CHECK(get(all[20])->exit_code == 3);
}

}  // namespace sandforge
