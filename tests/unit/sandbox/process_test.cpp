// Handles of spawned processes: output, input, end.
#include "sandforge/process.hpp"

#include "fixture.hpp"

namespace sandforge {
namespace {

struct Silent : Fixture {
  Silent() {
    sandbox->start();
    world->set_program([](const std::shared_ptr<fake::Process>& p) { p->start(); });
  }
  std::shared_ptr<Process> spawn(SpawnOptions options = {}) {
    process = sandbox->spawn(shell("program"), std::move(options));
    inside = world->processes().back();
    return process;
  }
  std::shared_ptr<Process> process;
  std::shared_ptr<fake::Process> inside;
};

}  // namespace

TEST_CASE("spawn answers once the process has started") {
  Silent f;
  f.world->set_program(nullptr);
  auto spawned = later<std::shared_ptr<Process>>(
      [&](auto done) { f.sandbox->async_spawn(shell("sleep"), {}, std::move(done)); });
  const auto inside = f.world->process(0);
  REQUIRE(inside != nullptr);
  CHECK(is_open(spawned));
  inside->start();
  const auto process = get(spawned).value();
  CHECK(process->id() == inside->id());
  CHECK(process->pid() == inside->pid());
  CHECK(process->command() == "sleep");
  CHECK(process->running());
  CHECK_FALSE(process->exit_code().has_value());
  inside->exit(3);
  CHECK(process->wait().exit_code == 3);
  CHECK_FALSE(process->running());
  CHECK(process->exit_code() == 3);
}

TEST_CASE("a process that could not start is an error of spawn") {
  Silent f;
  f.world->next_spawn(Error(Status::not_found, "no such directory: /nowhere"));
  CHECK_THROWS_AS(f.spawn(), NotFoundError);
  CHECK(f.sandbox->list_processes().empty());

  Error lost(Status::transport_lost, "reset");
  lost.may_have_started = true;
  f.world->next_spawn(lost);
  const Error error = error_of([&] { f.spawn(); });
  CHECK(error.code == Status::transport_lost);
  CHECK(error.may_have_started);
}

TEST_CASE("a process that ends before anybody looks was started all the same") {
  Silent f;
  f.world->set_program([](const std::shared_ptr<fake::Process>& p) {
    p->out("x");
    p->exit(0);
  });
  const auto process = f.spawn();
  CHECK(process->wait().out == "x");
  CHECK_FALSE(process->id().empty());
}

TEST_CASE("options of the call go before those of the command") {
  Silent f;
  Command command = shell("program");
  command.env = {{"A", "command"}, {"B", "command"}};
  command.cwd = "/a";
  command.timeout = std::chrono::milliseconds(600'000);
  command.tag = "t1";
  SpawnOptions options;
  options.env = {{"B", "call"}};
  options.cwd = "/b";
  options.detach = true;
  options.window = 4096;
  options.tty = Tty{100, 40, "vt100"};
  const auto process = f.sandbox->spawn(command, options);
  const Command& sent = f.world->process(0)->command;
  CHECK(sent.env == EnvMap{{"A", "command"}, {"B", "call"}});
  CHECK(sent.cwd == "/b");
  CHECK(sent.tag == "t1");
  CHECK(sent.detach);
  CHECK(sent.stdin_pipe);
  CHECK(sent.window == 4096);
  CHECK(sent.tty->cols == 100);
  CHECK(sent.timeout > std::chrono::milliseconds(300'000));
  auto resized = later<void>([&](auto done) { process->async_resize(10, 0, std::move(done)); });
  CHECK(get(resized).error().code == Status::invalid);
  resized = later<void>([&](auto done) { process->async_resize(10, 10, std::move(done)); });
  CHECK(get(resized).ok());
  process->kill();
}

TEST_CASE("output is retained while the process runs and after") {
  Silent f;
  const auto process = f.spawn();
  f.inside->out("one");
  f.inside->err("two");
  CHECK(eventually([&] { return process->out() == "one" && process->err() == "two"; }));
  CHECK(process->running());
  f.inside->out(" more");
  f.inside->exit(0);
  process->wait();
  CHECK(process->out() == "one more");
  CHECK(process->stdout_dropped_bytes() == 0);
}

TEST_CASE("spawn keeps one mebibyte of each stream") {
  Silent f;
  const auto process = f.spawn();
  const std::string piece(1 << 18, 'x');
  for (int i = 0; i < 5; ++i)
    f.inside->out(piece);
  f.inside->exit(0);
  const auto r = process->wait();
  CHECK(r.out.size() == (1U << 20));
  CHECK(r.stdout_dropped_bytes == (1U << 18));
  CHECK(process->stdout_dropped_bytes() == (1U << 18));
}

TEST_CASE("all who wait get the same result") {
  Silent f;
  const auto process = f.spawn();
  std::vector<std::future<Result<CommandResult>>> all;
  for (int i = 0; i < 10; ++i)
    all.push_back(
        later<CommandResult>([&](auto done) { process->async_wait({}, std::move(done)); }));
  f.inside->out("same");
  f.inside->exit(7);
  for (auto& one : all) {
    const auto r = get(one).value();
    CHECK(r.exit_code == 7);
    CHECK(r.out == "same");
  }
  CHECK(process->wait().exit_code == 7);
}

TEST_CASE("callbacks of a wait see what comes during that wait") {
  Silent f;
  std::string all;
  SpawnOptions options;
  options.on_stdout = [&](std::string_view data) { all += data; };
  const auto process = f.spawn(options);
  f.inside->out("before ");
  REQUIRE(eventually([&] { return process->out() == "before "; }));
  std::string seen;
  std::string err;
  WaitOptions wait;
  wait.on_stdout = [&](std::string_view data) { seen += data; };
  wait.on_stderr = [&](std::string_view data) {
    err += data;
    throw std::runtime_error("oops");
  };
  auto waited =
      later<CommandResult>([&](auto done) { process->async_wait(wait, std::move(done)); });
  auto other = later<CommandResult>([&](auto done) { process->async_wait({}, std::move(done)); });
  f.inside->out("during");
  f.inside->err("e1");
  f.inside->err("e2");
  f.inside->exit(0);
  const auto r = get(waited).value();
  CHECK(seen == "during");
  CHECK(err == "e1");
  CHECK(all == "before during");
  REQUIRE(r.error.has_value());
  CHECK(r.error->message == "the stderr callback threw: oops");
  CHECK_FALSE(get(other)->error.has_value());
}

TEST_CASE("a stop of a wait ends the process, after the wait it has no effect") {
  Silent f;
  const auto process = f.spawn();
  std::stop_source stop;
  WaitOptions wait;
  wait.stop = stop.get_token();
  auto waited =
      later<CommandResult>([&](auto done) { process->async_wait(wait, std::move(done)); });
  SECTION("during") {
    stop.request_stop();
    CHECK(get(waited)->outcome == Outcome::cancelled);
    CHECK(f.inside->cancels() == 1);
  }
  SECTION("before") {
    stop.request_stop();
    CHECK(process->wait(wait).outcome == Outcome::cancelled);
    CHECK(get(waited).ok());
  }
  SECTION("after") {
    f.inside->exit(0);
    CHECK(get(waited)->success);
    stop.request_stop();
    CHECK(process->wait(wait).success);
    CHECK(f.inside->cancels() == 0);
  }
}

TEST_CASE("kill ends the tree at once: true, then false") {
  Silent f;
  const auto process = f.spawn();
  f.inside->out("partial");
  CHECK(process->kill());
  const auto r = process->wait();
  CHECK(r.outcome == Outcome::signaled);
  CHECK(r.exit_code == 137);
  CHECK(r.killed);
  CHECK_FALSE(r.success);
  CHECK(r.out == "partial");
  CHECK(f.inside->signals() == std::vector<std::pair<int, bool>>{{9, true}});
  CHECK_FALSE(process->kill());
  CHECK(f.inside->signals().size() == 1);
}

TEST_CASE("kill where the provider has no signals cancels") {
  Silent f;
  f.world->set_program([](const std::shared_ptr<fake::Process>& p) {
    p->refuses_signals = true;
    p->start();
  });
  const auto process = f.spawn();
  CHECK(process->kill());
  CHECK(process->wait().outcome == Outcome::cancelled);
  CHECK(error_of([&] { process->signal(15); }).code == Status::conflict);
}

TEST_CASE("kill where the provider is lost ends within a bound") {
  Silent f;
  f.world->set_program([](const std::shared_ptr<fake::Process>& p) {
    p->ignores_signals = p->ignores_cancel = true;
    p->start();
  });
  SpawnOptions options;
  options.grace = std::chrono::milliseconds(10);
  const auto process = f.spawn(options);
  CHECK(process->kill());
  const auto r = process->wait();
  CHECK(r.outcome == Outcome::transport_lost);
  CHECK(r.error->reason == "command.lost");
}

TEST_CASE("signals go to the leader or to the tree") {
  Silent f;
  const auto process = f.spawn();
  f.inside->ignores_signals = true;
  process->signal(1);
  process->signal(10, true);
  CHECK(f.inside->signals() == std::vector<std::pair<int, bool>>{{1, false}, {10, true}});
  CHECK_THROWS_AS(process->signal(0), InvalidArgumentError);
  CHECK_THROWS_AS(process->signal(65), InvalidArgumentError);
  f.inside->exit(0);
  process->wait();
  CHECK(error_of([&] { process->signal(1); }).message ==
        "Process " + std::to_string(process->pid()) + " has already exited with code 0");
}

TEST_CASE("input: written, closed, read to its end") {
  Fixture f;
  const auto process = f.sandbox->spawn(shell("cat"));
  process->write("one ");
  process->write("");
  process->write(std::string("t\0o", 3));
  process->close_stdin();
  process->close_stdin();
  CHECK(process->wait().out == std::string("one t\0o", 7));
  process->close_stdin();  // closed already
  const std::string name = "Process " + std::to_string(process->pid());
  CHECK(error_of([&] { process->write("x"); }).message == name + " has already exited with code 0");
}

TEST_CASE("errors of input") {
  Silent f;
  SECTION("not asked for") {
    SpawnOptions options;
    options.stdin_pipe = false;
    const auto process = f.spawn(options);
    const std::string message =
        "Process " + std::to_string(process->pid()) + " does not have stdin available";
    CHECK(error_of([&] { process->write("x"); }).message == message);
    CHECK(error_of([&] { process->close_stdin(); }).message == message);
    CHECK_FALSE(f.inside->command.stdin_pipe);
    process->kill();
  }
  SECTION("after close") {
    const auto process = f.spawn();
    process->close_stdin();
    const Error error = error_of([&] { process->write("x"); });
    CHECK(error.code == Status::conflict);
    CHECK(error.reason == "stdin.closed");
    process->kill();
  }
  SECTION("after a signal") {
    const auto process = f.spawn();
    process->kill();
    process->wait();
    CHECK(error_of([&] { process->close_stdin(); }).message ==
          "Process " + std::to_string(process->pid()) + " has already exited with code 137");
  }
  SECTION("after a loss") {
    const auto process = f.spawn();
    f.inside->fail(Error(Status::transport_lost, "reset"));
    process->wait();
    CHECK(error_of([&] { process->write("x"); }).message ==
          "Process " + std::to_string(process->pid()) + " has already ended: transport_lost");
  }
}

TEST_CASE("a write answers when all of it was taken") {
  Silent f;
  const auto process = f.spawn();
  f.inside->set_room(4);
  auto write = [&](std::string data) {
    return later<void>([&](auto done) { process->async_write(std::move(data), std::move(done)); });
  };
  auto first = write("1234567");
  auto second = write("89");
  auto closed = later<void>([&](auto done) { process->async_close_stdin(std::move(done)); });
  REQUIRE(eventually([&] { return f.inside->input() == "1234"; }));
  CHECK(is_open(first));
  auto refused = write("x");
  CHECK(get(refused).error().reason == "stdin.closed");
  SECTION("room comes") {
    f.inside->writable(4);
    CHECK(get(first).ok());
    CHECK(is_open(second));
    CHECK_FALSE(f.inside->input_closed());
    f.inside->writable(4);
    CHECK(get(second).ok());
    CHECK(get(closed).ok());
    CHECK(f.inside->input() == "123456789");
    CHECK(f.inside->input_closed());
    process->kill();
  }
  SECTION("the process ends") {
    f.inside->exit(0);
    CHECK(get(first).error().code == Status::conflict);
    CHECK(get(second).error().code == Status::conflict);
    CHECK(get(closed).error().code == Status::conflict);
  }
}

TEST_CASE("writes that wait are bounded") {
  Silent f;
  const auto process = f.spawn();
  f.inside->set_room(0);
  const std::string large(std::size_t{40} << 20, 'x');
  const auto write = [&] {
    return later<void>([&](auto done) { process->async_write(large, std::move(done)); });
  };
  auto first = write();
  auto second = write();
  CHECK(get(second).error().reason == "stdin.queue_full");
  process->kill();
  CHECK_FALSE(get(first).ok());
}

TEST_CASE("manual credit holds a producer back") {
  Silent f;
  std::atomic<std::size_t> seen{0};
  SpawnOptions options;
  options.manual_credit = true;
  options.window = 10;
  options.on_stdout = [&](std::string_view data) { seen += data.size(); };
  const auto process = f.spawn(options);
  f.inside->out(std::string(25, 'x'));
  f.inside->exit(0);
  REQUIRE(eventually([&] { return seen == 10; }));
  CHECK(process->running());
  process->grant(10);
  REQUIRE(eventually([&] { return seen == 20; }));
  CHECK(process->running());
  process->grant(100);
  CHECK(process->wait().out.size() == 25);
  CHECK(f.inside->granted() == 110);
}

TEST_CASE("a window of nothing and manual credit: output comes by grant only") {
  Silent f;
  SpawnOptions options;
  options.manual_credit = true;
  options.window = 0;
  const auto process = f.spawn(options);
  f.inside->out("x");
  f.inside->exit(0);
  process->grant(1);
  CHECK(process->wait().out == "x");
}

TEST_CASE("a process outlives the sandbox object that spawned it") {
  Silent f;
  const auto process = f.spawn();
  f.sandbox.reset();
  f.inside->out("still here");
  f.inside->exit(0);
  CHECK(process->wait().out == "still here");
}

TEST_CASE("a process that nobody holds is let go, not ended") {
  Silent f;
  f.spawn();
  f.process.reset();
  f.sandbox.reset();
  f.inside->out("into the void");
  CHECK(f.inside->cancels() == 0);
  CHECK(f.inside->signals().empty());
}

}  // namespace sandforge
