// The process service of the fake host: scripted commands, and real ones.
#include <sandforge/testing/process.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/consumer.hpp>
#include <sandforge/testing/host.hpp>

using namespace sandforge::testing;

namespace {

// A host, and a lane to run commands on.
struct Shell {
  Host host;
  Lane* lane = Lane::create(host.loop);

  ~Shell() {
    lane->release();
    host.join();
    host.loop.drain();
    CHECK(left_over().empty());
  }
  void spawn(CommandLine& line, Running& running) {
    line.window = running.granted;
    const sf_command command = line.view();
    const sf_stream_events io = running.events();
    const sf_process_events events = running.process_events();
    sf_process* process = nullptr;
    REQUIRE(host.process.spawn(&host, lane, &command, &io, &events, &process, nullptr) == SF_OK);
    running.took(process);
  }
  void finish(Running& running) {
    CHECK(host.loop.run_until([&] { return running.done > 0; }));
    CHECK(running.rules_kept());
    CHECK_FALSE(running.disorder);
    running.release();
    host.loop.drain();
  }
};

}  // namespace

TEST_CASE("a command is answered by the script, once, and recorded") {
  Shell shell;
  shell.host.process.expect("git clone url", 3, "out", "err");
  CommandLine line;
  line.argv = {"git", "clone", "url"};
  Running first(8), second(8);
  shell.spawn(line, first);
  shell.finish(first);
  CHECK(first.out == "out");
  CHECK(first.err == "err");
  CHECK(first.pid == 100);
  CHECK(first.exit.code == 3);
  CHECK(shell.host.process.unused().empty());
  shell.spawn(line, second);
  shell.finish(second);
  CHECK(second.started == 0);
  CHECK(second.failure.message == "the test expects no command git clone url");
  CHECK(shell.host.process.unexpected() == std::vector<std::string>{"git clone url"});
  CHECK(shell.host.process.commands().size() == 2);
}

TEST_CASE("a handler holds the command, hears its input and signals, and ends it") {
  Shell shell;
  std::shared_ptr<Invocation> command;
  shell.host.process.handler = [&](const std::shared_ptr<Invocation>& given) {
    command = given;
    command->started(7);
    command->on_input = [&](std::string_view data) { command->out(std::string(data)); };
    command->on_input_end = [&] { command->exit(0); };
    command->on_signal = [&](std::int32_t signal, std::uint32_t) {
      command->err(std::to_string(signal));
    };
  };
  CommandLine line;
  line.shell = "cat";
  line.cwd = "/work";
  line.env = {{"A", "0"}, {"A", "1"}};
  line.stdin_mode = SF_STDIN_PIPE;
  Running running(8);
  shell.spawn(line, running);
  REQUIRE(shell.host.loop.run_until([&] { return running.started > 0; }));
  CHECK(command->line == "cat");
  CHECK(command->cwd == "/work");
  CHECK(command->variable("A") == "1");
  CHECK(command->has_input);
  Result signalled;
  shell.lane->post([&] {
    std::size_t accepted = 0;
    running.stream->vtbl->write(running.stream, bytes("in"), 0, &accepted, nullptr);
    running.process->vtbl->signal(running.process, 15, SF_SIGNAL_TREE, completion(signalled),
                                  nullptr, nullptr);
    running.stream->vtbl->shutdown_write(running.stream, nullptr);
  });
  sf_process* process = running.process;
  CHECK(shell.host.loop.run_until([&] { return running.done > 0; }));
  CHECK(process->vtbl->signal(process, 15, SF_SIGNAL_TREE, completion(signalled), nullptr,
                              nullptr) == SF_GONE);
  shell.finish(running);
  CHECK(running.out == "in");
  CHECK(running.err == "15");
  CHECK(signalled.done == 1);
  CHECK(command->ended());
}

TEST_CASE("a held command ends by its time limit, a cancel or a signal") {
  Shell shell;
  shell.host.process.handler = [](const std::shared_ptr<Invocation>& given) { given->started(); };
  CommandLine line;
  line.shell = "wait";
  Running cancelled(8), killed(8), late(8);
  shell.spawn(line, cancelled);
  shell.spawn(line, killed);
  line.timeout_ms = 5000;
  shell.spawn(line, late);
  CHECK_FALSE(shell.host.loop.run_until([&] { return late.done > 0; }));
  cancelled.stream->vtbl->cancel(cancelled.stream);
  Result done;
  killed.process->vtbl->signal(killed.process, 9, SF_SIGNAL_TREE, completion(done), nullptr,
                               nullptr);
  shell.finish(cancelled);
  shell.finish(killed);
  CHECK(cancelled.exit.outcome == SF_EXIT_CANCELLED);
  CHECK(killed.exit.outcome == SF_EXIT_SIGNALED);
  CHECK(killed.exit.signal == 9);
  shell.host.loop.advance(std::chrono::seconds(5));
  shell.finish(late);
  CHECK(late.exit.outcome == SF_EXIT_TIMED_OUT);
}

TEST_CASE("real commands run in their folder, with exactly their environment") {
  Shell shell;
  shell.host.process.real = true;
  CommandLine line;
  line.shell = "pwd; echo $A-$HOME; exit 4";
  line.cwd = "/";
  line.env = {{"A", "1"}, {"PATH", "/usr/bin:/bin"}};
  Running running(3);
  shell.spawn(line, running);
  shell.finish(running);
  CHECK(running.out == "/\n1-\n");
  CHECK(running.exit.code == 4);

  line = {};
  line.argv = {"/no/such/program"};
  Running missing(8);
  shell.spawn(line, missing);
  shell.finish(missing);
  CHECK(missing.failure.code == SF_NOT_FOUND);
  CHECK(missing.started == 0);
}

TEST_CASE("a real command ends with its tree at its time limit") {
  Shell shell;
  shell.host.process.real = true;
  CommandLine line;
  line.shell = "echo on; exec cat";
  line.env = {{"PATH", "/usr/bin:/bin"}};
  line.stdin_mode = SF_STDIN_PIPE;
  line.timeout_ms = 1000;
  Running running(8);
  shell.spawn(line, running);
  REQUIRE(shell.host.loop.run_until([&] { return running.out == "on\n"; }));
  shell.host.loop.advance(std::chrono::seconds(1));
  shell.finish(running);
  CHECK(running.exit.outcome == SF_EXIT_TIMED_OUT);
  CHECK(running.exit.signal == 9);
}
