// What a command is made of, and what its result says.
#include "sandforge/command.hpp"

#include "fixture.hpp"

namespace sandforge {
namespace {

std::future<Result<CommandResult>> exec_later(Sandbox& sandbox, ExecOptions options = {}) {
  return later<CommandResult>(
      [&](auto done) { sandbox.async_exec({"program"}, std::move(options), std::move(done)); });
}

// A started sandbox whose processes do nothing by themselves.
struct Silent : Fixture {
  explicit Silent(SandboxConfig config = {}) : Fixture(std::move(config)) {
    sandbox->start();
    world->set_program([](const std::shared_ptr<fake::Process>& p) { p->start(); });
  }
};

}  // namespace

TEST_CASE("shell text stays as it is, arguments are quoted") {
  Fixture f;
  const auto result = f.sandbox->execute_command("printf '%s' \"$@\" |", {"a b", "x'y", "", "-n"});
  CHECK(result.command == "printf '%s' \"$@\" | 'a b' 'x'\\''y' '' -n");
  CHECK(f.world->process(0)->command.shell == result.command);
  CHECK(f.world->process(0)->command.argv.empty());
}

TEST_CASE("argv goes through as it is") {
  Fixture f;
  const std::vector<std::string> argv{"printf", "%s", "$HOME", "\xff\xfe", ""};
  const auto result = f.sandbox->exec(argv);
  CHECK(f.world->process(0)->command.argv == argv);
  CHECK_FALSE(f.world->process(0)->command.shell.has_value());
  CHECK(result.command == "printf '%s' '$HOME' '\xff\xfe' ''");
}

TEST_CASE("bad commands are refused before anything starts") {
  Fixture f;
  const std::string nul("a\0b", 3);
  ExecOptions options;
  std::function<void()> call = [&] { f.sandbox->exec({"true"}, options); };
  SECTION("empty shell text") {
    call = [&] { f.sandbox->execute_command(""); };
  }
  SECTION("NUL in shell text") {
    call = [&] { f.sandbox->execute_command(nul); };
  }
  SECTION("NUL in an argument of shell text") {
    call = [&] { f.sandbox->execute_command("echo", {nul}); };
  }
  SECTION("empty argv") {
    call = [&] { f.sandbox->exec({}); };
  }
  SECTION("empty program") {
    call = [&] { f.sandbox->exec({""}); };
  }
  SECTION("NUL in argv") {
    call = [&] { f.sandbox->exec({"echo", nul}); };
  }
  SECTION("empty environment name") {
    options.env[""] = "x";
  }
  SECTION("= in an environment name") {
    options.env["A=B"] = "x";
  }
  SECTION("NUL in an environment name") {
    options.env[nul] = "x";
  }
  SECTION("NUL in an environment value") {
    options.env["A"] = nul;
  }
  SECTION("NUL in cwd") {
    options.cwd = nul;
  }
  SECTION("NUL in user") {
    options.user = nul;
  }
  SECTION("negative timeout") {
    options.timeout = std::chrono::milliseconds(-1);
  }
  SECTION("negative grace") {
    options.grace = std::chrono::milliseconds(-1);
  }
  SECTION("shell text and argv") {
    call = [&] {
      Command both = shell("true");
      both.argv = {"true"};
      f.sandbox->spawn(both);
    };
  }
  SECTION("a terminal of no size") {
    call = [&] {
      SpawnOptions spawn;
      spawn.tty = Tty{0, 24, "xterm"};
      f.sandbox->spawn(shell("true"), spawn);
    };
  }
  SECTION("no window and no credit") {
    call = [&] {
      SpawnOptions spawn;
      spawn.window = 0;
      f.sandbox->spawn(shell("true"), spawn);
    };
  }
  CHECK_THROWS_AS(call(), InvalidArgumentError);
  CHECK(f.world->counts().starts == 0);
  CHECK(f.sandbox->status() == SandboxStatus::pending);
}

TEST_CASE("options reach the provider") {
  Fixture f;
  ExecOptions options;
  options.cwd = "/tmp";
  options.user = "daemon";
  options.combined = true;
  options.tag = "build";
  options.request_id = "r1";
  options.grace = std::chrono::milliseconds(77);
  f.sandbox->exec({"true"}, options);
  const Command& command = f.world->process(0)->command;
  CHECK(command.cwd == "/tmp");
  CHECK(command.user == "daemon");
  CHECK(command.combined);
  CHECK(command.tag == "build");
  CHECK(command.request_id == "r1");
  CHECK(command.grace == std::chrono::milliseconds(77));
  CHECK(command.timeout == std::chrono::milliseconds(0));
  CHECK_FALSE(command.stdin_pipe);
  f.sandbox->exec({"true"});
  f.sandbox->exec({"true"});
  const auto id = [&](std::size_t n) { return f.world->process(n)->command.request_id; };
  CHECK_FALSE(id(1).empty());
  CHECK(id(1) != id(2));
  CHECK_FALSE(f.world->process(1)->command.cwd.has_value());
}

TEST_CASE("the environment: what is left with the machine does not replace the default") {
  SandboxConfig config;
  config.left_env = {{"LEFT", "1"}};
  Fixture f(config);
  f.sandbox->start();
  CHECK_FALSE(f.world->starts()[0].env_given);
  CHECK(f.world->starts()[0].env == EnvMap{{"LEFT", "1"}});
  CloneOptions other;
  other.env = EnvMap{{"OWN", "2"}};
  f.sandbox->clone(other).value()->start();
  CHECK(f.world->starts()[1].env == EnvMap{{"OWN", "2"}});
}

TEST_CASE("the environment: overlay, then the call, then an explicit unset") {
  SandboxConfig config;
  config.env = EnvMap{{"BASE", "1"}};
  config.overlay = {{"A", "overlay"}, {"B", "overlay"}, {"C", "overlay"}};
  config.left_env = {{"LEFT", "with the machine"}};
  Fixture f(config);
  ExecOptions options;
  options.env = {{"B", "call"}, {"C", std::nullopt}};
  f.sandbox->exec({"true"}, options);
  const EnvMap expected{{"A", "overlay"}, {"B", "call"}, {"C", std::nullopt}};
  CHECK(f.world->process(0)->command.env == expected);
  // The sandbox's own goes with its start.
  CHECK(f.world->starts()[0].env_given);
  CHECK(f.world->starts()[0].env == EnvMap{{"BASE", "1"}, {"LEFT", "with the machine"}});
  // The next call sees the first again.
  CHECK(f.sandbox->execute_command("printenv B").out == "overlay\n");

  f.sandbox->set_env([](EnvMap env) {
    env.erase("A");
    env["B"] = "rotated";
    return env;
  });
  CHECK(f.sandbox->execute_command("printenv B").out == "rotated\n");
  CHECK(f.sandbox->execute_command("printenv A").exit_code == 1);
  EnvMap copy = f.sandbox->env();
  copy["B"] = "mine";
  CHECK(f.sandbox->env().at("B") == "rotated");
  CHECK_THROWS_AS(f.sandbox->set_env([](EnvMap) {
    return EnvMap{{"X=", "1"}};
  }),
                  InvalidArgumentError);
  CHECK(f.sandbox->env().at("B") == "rotated");
  f.sandbox->set_env([](EnvMap) { return EnvMap(); });
  f.sandbox->exec({"true"});
  CHECK(f.world->processes().back()->command.env.empty());
}

TEST_CASE("the context's environment function is evaluated for each start") {
  SandboxConfig config;
  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId("s1");
  context->factory_id = "f1";
  int calls = 0;
  context->env = [&](const SessionContext& c) -> std::optional<EnvMap> {
    ++calls;
    if (calls == 3) throw std::runtime_error("vault sealed");
    if (calls == 4) return EnvMap{{"A=", "x"}};
    if (calls == 5) return std::nullopt;
    return EnvMap{{"F", *c.factory_id + std::to_string(calls)}};
  };
  config.context = context;
  config.env = EnvMap{{"G", "own"}};
  Fixture f(config);
  CHECK(calls == 0);
  f.sandbox->start();
  f.sandbox->stop();
  f.sandbox->start();
  CHECK(f.world->starts()[1].env == EnvMap{{"F", "f12"}});
  f.sandbox->stop();
  CHECK(error_of([&] { f.sandbox->start(); }).message ==
        "the environment function threw: vault sealed");
  CHECK(error_of([&] { f.sandbox->start(); }).code == Status::invalid);
  f.sandbox->start();
  CHECK(f.world->starts()[2].env == EnvMap{{"G", "own"}});
}

TEST_CASE("without an environment of its own the provider's rule holds") {
  Fixture f;
  f.sandbox->start();
  CHECK_FALSE(f.world->starts()[0].env_given);
}

TEST_CASE("how a process ends is what the result says") {
  Silent f;
  auto run = exec_later(*f.sandbox);
  const auto p = f.world->process(0);
  p->out("out");
  p->err("err");
  SECTION("exit 0") {
    p->exit(0);
    const auto r = get(run).value();
    CHECK(r.outcome == Outcome::exited);
    CHECK(r.success);
    CHECK(r.exit_code == 0);
    CHECK(r.out == "out");
    CHECK(r.err == "err");
    CHECK_FALSE(r.timed_out);
    CHECK_FALSE(r.killed);
    CHECK_FALSE(r.stdout_truncated);
    CHECK(r.command_may_have_started);
    CHECK_FALSE(r.error.has_value());
  }
  SECTION("exit 42") {
    p->exit(42);
    const auto r = get(run).value();
    CHECK(r.exit_code == 42);
    CHECK_FALSE(r.success);
  }
  SECTION("a signal of its own") {
    p->signaled(9, false);
    const auto r = get(run).value();
    CHECK(r.outcome == Outcome::signaled);
    CHECK(r.exit_code == 137);
    CHECK(r.signal == 9);
    CHECK_FALSE(r.killed);
    CHECK_FALSE(r.success);
  }
  SECTION("out of memory") {
    Exit exit;
    exit.outcome = Outcome::out_of_memory;
    exit.signal = 9;
    p->end(exit);
    const auto r = get(run).value();
    CHECK(r.outcome == Outcome::out_of_memory);
    CHECK_FALSE(r.exit_code.has_value());
    CHECK(r.out == "out");
  }
  SECTION("a timeout whose process exited by itself") {
    Exit exit;
    exit.outcome = Outcome::timed_out;
    exit.code = 0;
    p->end(exit);
    const auto r = get(run).value();
    CHECK(r.timed_out);
    CHECK(r.exit_code == 124);
    CHECK_FALSE(r.killed);
    CHECK_FALSE(r.success);
  }
  SECTION("an end without a word about it") {
    Exit exit;
    p->end(exit);
    const auto r = get(run).value();
    CHECK(r.outcome == Outcome::unknown);
    CHECK_FALSE(r.exit_code.has_value());
    CHECK_FALSE(r.success);
  }
}

TEST_CASE("a stream that is lost is never an exit code, and keeps what came") {
  Silent f;
  auto run = exec_later(*f.sandbox);
  const auto p = f.world->process(0);
  p->out("partial");
  const bool after_exit = GENERATE(false, true);
  if (after_exit) {
    Exit exit;
    exit.outcome = Outcome::exited;
    exit.code = 0;
    p->only_exit_event(exit);
  }
  const auto [code, outcome] = GENERATE(table<Status, Outcome>({
      {Status::transport_lost, Outcome::transport_lost},
      {Status::gone, Outcome::destroyed},
      {Status::crashed, Outcome::crashed},
      {Status::cancelled, Outcome::cancelled},
      {Status::internal, Outcome::unknown},
  }));
  p->fail(Error(code, "the connection broke"));
  const auto r = get(run).value();
  CHECK(r.outcome == outcome);
  CHECK_FALSE(r.exit_code.has_value());
  CHECK_FALSE(r.success);
  CHECK(r.out == "partial");
  CHECK(r.command_may_have_started);
  REQUIRE(r.error.has_value());
  CHECK(r.error->message == "the connection broke");
}

TEST_CASE("a command that could not start is an error") {
  Fixture f;
  f.sandbox->start();
  const bool with_done = GENERATE(true, false);
  Error missing(Status::not_found, "no such directory: /nowhere", "command.cwd");
  missing.details.set("path", "/nowhere");
  f.world->next_spawn(missing, with_done);
  const Error error = error_of([&] { f.sandbox->execute_command("true"); });
  CHECK(error.code == Status::not_found);
  CHECK(error.details.find("path")->as_string() == "/nowhere");
  CHECK_FALSE(error.may_have_started);
  CHECK(f.world->counts().spawns == 1);
  CHECK(f.sandbox->execute_command("echo fine").out == "fine\n");
}

TEST_CASE("a command is sent again only if it provably never started") {
  Fixture f;
  f.sandbox->start();
  Error cut(Status::transport_lost, "connection reset");
  SECTION("cut before delivery") {
    f.world->next_spawn(cut, true);
    f.world->next_spawn(cut, false);
    const auto r = f.sandbox->execute_command("echo once");
    CHECK(r.out == "once\n");
    CHECK(f.world->counts().spawns == 3);
    CHECK(f.world->processes().size() == 1);
  }
  SECTION("cut again and again") {
    for (int i = 0; i < 9; ++i)
      f.world->next_spawn(cut);
    const Error error = error_of([&] { f.sandbox->execute_command("true"); });
    CHECK(error.code == Status::transport_lost);
    CHECK_FALSE(error.may_have_started);
    CHECK(f.world->counts().spawns == 3);
  }
  SECTION("perhaps delivered") {
    cut.may_have_started = true;
    f.world->next_spawn(cut);
    const auto r = f.sandbox->execute_command("true");
    CHECK(r.outcome == Outcome::transport_lost);
    CHECK(r.command_may_have_started);
    CHECK_FALSE(r.exit_code.has_value());
    CHECK(f.world->counts().spawns == 1);
  }
  SECTION("perhaps delivered, and told as another kind of error") {
    const Status code = GENERATE(Status::conflict, Status::gone, Status::unavailable);
    Error odd(code, "odd");
    odd.may_have_started = true;
    f.world->next_spawn(odd);
    CHECK(f.sandbox->execute_command("true").command_may_have_started);
    CHECK(f.world->counts().spawns == 1);
    CHECK(f.sandbox->status() == SandboxStatus::running);
  }
  SECTION("the same request id on every try") {
    ExecOptions options;
    options.request_id = "r7";
    f.world->next_spawn(cut);
    f.sandbox->exec({"true"}, options);
    CHECK(f.world->process(0)->command.request_id == "r7");
  }
}

TEST_CASE("callbacks see every byte, in order, before the result") {
  Silent f;
  std::string out;
  std::string err;
  int calls = 0;
  ExecOptions options;
  options.on_stdout = [&](std::string_view data) {
    out += data;
    ++calls;
  };
  options.on_stderr = [&](std::string_view data) { err += data; };
  options.max_retained_bytes = 4;
  auto run = exec_later(*f.sandbox, options);
  const auto p = f.world->process(0);
  p->out("one");
  p->err("two");
  p->out(std::string("\0\xff", 2));
  p->exit(0);
  const auto r = get(run).value();
  CHECK(calls == 2);
  CHECK(out == std::string("one\0\xff", 5));
  CHECK(err == "two");
  CHECK(r.out == std::string("ne\0\xff", 4));
  CHECK(r.stdout_truncated);
  CHECK(r.stdout_dropped_bytes == 1);
  CHECK(r.err == "two");
  CHECK_FALSE(r.stderr_truncated);
}

TEST_CASE("a callback that throws does not stop the command and is told once") {
  Silent f;
  int calls = 0;
  std::string err;
  ExecOptions options;
  options.on_stdout = [&](std::string_view) {
    ++calls;
    throw std::runtime_error("oops");
  };
  options.on_stderr = [&](std::string_view data) { err += data; };
  auto run = exec_later(*f.sandbox, options);
  const auto p = f.world->process(0);
  p->out("one");
  p->out("two");
  p->err("three");
  p->exit(0);
  const auto r = get(run).value();
  CHECK(calls == 1);
  CHECK(err == "three");
  CHECK(r.success);
  CHECK(r.out == "onetwo");
  REQUIRE(r.error.has_value());
  CHECK(r.error->message == "the stdout callback threw: oops");
  CHECK(r.error->reason == "callback.threw");
}

TEST_CASE("what is retained") {
  Silent f;
  ExecOptions options;
  const auto [limit, kept, dropped] = GENERATE(table<std::uint64_t, std::string, std::uint64_t>({
      {0, "", 11},
      {5, "world", 6},
      {11, "hello world", 0},
      {kUnlimited, "hello world", 0},
  }));
  options.max_retained_bytes = limit;
  auto run = exec_later(*f.sandbox, options);
  const auto p = f.world->process(0);
  for (const char c : std::string("hello world"))
    p->out(std::string(1, c));
  p->exit(0);
  const auto r = get(run).value();
  CHECK(r.out == kept);
  CHECK(r.stdout_dropped_bytes == dropped);
  CHECK(r.stdout_truncated == (dropped != 0));
}

TEST_CASE("a hard limit on output ends the command") {
  Silent f;
  std::string seen;
  ExecOptions options;
  options.output_limit = 6;
  options.on_stdout = [&](std::string_view data) { seen += data; };
  auto run = exec_later(*f.sandbox, options);
  const auto p = f.world->process(0);
  p->out("1234");
  p->err("56");
  CHECK(eventually(
      [&] { return p->cancels() == 0 && f.sandbox->status() == SandboxStatus::running; }));
  p->out("78");
  const auto r = get(run).value();
  CHECK(r.outcome == Outcome::output_limit);
  CHECK_FALSE(r.exit_code.has_value());
  CHECK_FALSE(r.success);
  CHECK(r.killed);
  CHECK(seen == "1234");
  CHECK(r.out == "1234");
  CHECK(r.err == "56");
  CHECK(r.stdout_dropped_bytes == 2);
  CHECK(p->cancels() == 1);
}

TEST_CASE("output of exactly the hard limit is no excess") {
  Silent f;
  ExecOptions options;
  options.output_limit = 4;
  auto run = exec_later(*f.sandbox, options);
  f.world->process(0)->out("1234");
  f.world->process(0)->exit(0);
  CHECK(get(run)->success);
}

TEST_CASE("credit comes back as output is consumed, and is never exceeded") {
  Silent f;
  std::uint64_t seen = 0;
  ExecOptions options;
  options.on_stdout = [&](std::string_view data) { seen += data.size(); };
  options.max_retained_bytes = 10;
  auto run = exec_later(*f.sandbox, options);
  const auto p = f.world->process(0);
  const std::uint64_t window = p->command.window;
  const std::string chunk(window * 3 / 2, 'x');
  for (int i = 0; i < 4; ++i)
    p->out(chunk);
  p->exit(0);
  const auto r = get(run).value();
  CHECK(seen == 4 * chunk.size());
  CHECK(r.stdout_dropped_bytes == 4 * chunk.size() - 10);
  CHECK(p->granted() >= 5 * window);
}

TEST_CASE("events after the end reach nobody") {
  Silent f;
  int calls = 0;
  ExecOptions options;
  options.on_stdout = [&](std::string_view) { ++calls; };
  auto run = exec_later(*f.sandbox, options);
  const auto p = f.world->process(0);
  p->exit(0);
  CHECK(get(run)->out.empty());
  p->late_output("late");
  f.world->set_program(fake::basic_program);
  f.sandbox->execute_command("true");
  CHECK(calls == 0);
}

TEST_CASE("bytes that the provider dropped are counted") {
  Silent f;
  auto run = later<CommandResult>([&](auto done) {
    ExecOptions options;
    std::stop_source stop;
    options.stop = stop.get_token();
    options.on_stdout = [stop](std::string_view) mutable { stop.request_stop(); };
    f.sandbox->async_exec({"program"}, std::move(options), std::move(done));
  });
  const auto p = f.world->process(0);
  p->out(std::string(p->command.window, 'x'));
  const auto r = get(run).value();
  CHECK(r.outcome == Outcome::cancelled);
  CHECK(r.out.size() + r.stdout_dropped_bytes == p->command.window);
}

TEST_CASE("the json of a result") {
  CommandResult result;
  result.outcome = Outcome::signaled;
  result.exit_code = 137;
  result.signal = 9;
  result.killed = true;
  result.out = "caf\xc3\xa9\xff";
  result.err = "\x80\x80tail";  // the rest of a character whose beginning was dropped
  result.stderr_truncated = true;
  result.stderr_dropped_bytes = 2;
  result.execution_time = std::chrono::milliseconds(12);
  result.command = "kill -9 $$";
  result.error = Error(Status::internal, "m");
  CHECK(json::write(to_json(result)) ==
        "{\"outcome\":\"signaled\",\"success\":false,\"exitCode\":137,\"signal\":9,"
        "\"stdout\":\"caf\xc3\xa9\xef\xbf\xbd\",\"stderr\":\"tail\",\"executionTimeMs\":12,"
        "\"timedOut\":false,\"killed\":true,\"stdoutTruncated\":false,\"stderrTruncated\":true,"
        "\"stdoutDroppedBytes\":0,\"stderrDroppedBytes\":2,\"command\":\"kill -9 $$\","
        "\"commandMayHaveStarted\":true,\"error\":{\"code\":\"INTERNAL\",\"message\":\"m\"}}");
}

TEST_CASE("every outcome has its name") {
  const std::vector<std::string> names = {
      "exited",       "signaled",       "timed_out", "cancelled", "out_of_memory",
      "output_limit", "transport_lost", "destroyed", "crashed",   "unknown"};
  for (std::size_t i = 0; i < names.size(); ++i)
    CHECK(to_string(static_cast<Outcome>(i)) == names[i]);
  CHECK(to_string(static_cast<Outcome>(200)) == "unknown");
}

}  // namespace sandforge
