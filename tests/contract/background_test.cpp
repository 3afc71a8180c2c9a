// A07 to A09: what a command leaves running, and what it reads.
#include <fstream>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

void returns_and_leaves_child(LocalFixture& host, const std::string& background) {
  const auto sandbox = host.started();
  CommandResult result;
  const auto took = timed([&] {
    result = sh(*sandbox, background + " & echo $! > child.new; mv child.new child; echo hi");
  });
  CHECK(result.outcome == Outcome::exited);
  CHECK(result.exit_code == 0);
  CHECK(result.out == "hi\n");
  CHECK(took < 10s);
  const pid_t child = read_pid(host.folder() / "child");
  CHECK(alive(child));
  CHECK(sandbox->exec({"true"}).success);
  CHECK(alive(child));
  sandbox->stop();
  CHECK(eventually([&] { return !alive(child); }));
  CHECK(host.nothing_runs());
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "A07 a quiet background child does not hold its command up",
                 "[cases.A07]") {
  const auto sandbox = started();
  CommandResult result;
  const auto took = timed([&] { result = sh(*sandbox, "sleep 30 & echo hi"); });
  CHECK(result.exit_code == 0);
  CHECK(result.out == "hi\n");
  CHECK(took < 10s);
}

TEST_CASE_METHOD(LocalFixture, "A07 a sleeping child lives on until stop", "[cases.A07]") {
  returns_and_leaves_child(*this, "sleep 30");
}

TEST_CASE_METHOD(LocalFixture, "A07 a child that writes as fast as it can lives on until stop",
                 "[cases.A07]") {
  const auto sandbox = started();
  std::uint64_t lines = 0;
  ExecOptions options;
  options.max_retained_bytes = 1U << 16;
  options.on_stdout = [&](std::string_view chunk) { lines += chunk.size(); };
  CommandResult result;
  const auto took =
      timed([&] { result = sh(*sandbox, "yes & echo $! > child; echo hi", options); });
  CHECK(result.exit_code == 0);
  CHECK(took < 10s);
  const pid_t child = read_pid(folder() / "child");
  CHECK(alive(child));
  CHECK(sandbox->exec({"echo", "next"}).out == "next\n");
  CHECK(alive(child));
  sandbox->stop();
  CHECK(eventually([&] { return !alive(child); }));
}

TEST_CASE_METHOD(LocalFixture, "A07 a child that writes now and then lives on until stop",
                 "[cases.A07]") {
  const auto sandbox = started();
  CommandResult result;
  const auto took = timed([&] {
    result = sh(*sandbox,
                "(while :; do echo t >> ticks; echo t; sleep .1; done) & echo $! > child; echo hi");
  });
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("hi\n") != std::string::npos);
  CHECK(took < 10s);
  const pid_t child = read_pid(folder() / "child");
  const auto ticks = fs::file_size(folder() / "ticks");
  // It still writes into pipes that nobody listens to, and is not blocked.
  CHECK(eventually([&] { return fs::file_size(folder() / "ticks") > ticks + 4; }));
  CHECK(alive(child));
  sandbox->stop();
  CHECK(eventually([&] { return !alive(child); }));
}

TEST_CASE_METHOD(LocalFixture, "A07 a child lives on while credit is withheld", "[cases.A07]") {
  const auto sandbox = started();
  SpawnOptions options;
  options.manual_credit = true;
  options.window = 64;
  const auto process = sandbox->spawn(shell("echo hi; yes & echo $! > child"), options);
  const pid_t child = read_pid(folder() / "child");
  const auto leader = static_cast<pid_t>(process->pid());
  REQUIRE(eventually([&] { return !alive(leader); }));
  REQUIRE(eventually([&] { return process->out().size() == 64; }));
  // The time for output to come counts only while credit is open.
  CHECK(sandbox->exec({"sleep", "2.5"}).success);
  CHECK(alive(child));
  CHECK(process->running());
  process->grant(kUnlimited / 2);
  CommandResult result;
  CHECK(timed([&] { result = process->wait(); }) < 10s);
  CHECK(result.exit_code == 0);
  CHECK(alive(child));
  sandbox->stop();
  CHECK(eventually([&] { return !alive(child); }));
}

TEST_CASE_METHOD(LocalFixture, "A08 what reads without being given input finds its end",
                 "[cases.A08]") {
  const auto sandbox = started();
  ExecOptions options;
  options.timeout = 20s;
  const auto cat = sandbox->execute_command("cat", {}, options);
  CHECK(cat.exit_code == 0);
  CHECK(cat.out.empty());
  CHECK(sandbox->execute_command("read x", {}, options).exit_code == 1);
  CHECK(sandbox->exec({"grep", "pattern"}, options).exit_code == 1);
  if (sh(*sandbox, "command -v rg").success)
    CHECK(sandbox->exec({"rg", "pattern"}, options).exit_code == 1);
  SpawnOptions no_input;
  no_input.stdin_pipe = false;
  no_input.timeout = 20s;
  CHECK(sandbox->spawn(argv({"cat"}), no_input)->wait().exit_code == 0);
}

TEST_CASE_METHOD(LocalFixture, "A09 input arrives whole", "[cases.A09]") {
  const auto sandbox = started();
  std::string large(5U << 20, '\0');
  for (std::size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<char>(i * 31 + i / 251);
  SpawnOptions options;
  options.max_retained_bytes = 16U << 20;
  const auto process = sandbox->spawn(argv({"cat"}), options);
  process->write("first ");
  process->write(large);
  process->write("");
  process->close_stdin();
  process->close_stdin();
  const auto result = process->wait();
  CHECK(result.exit_code == 0);
  CHECK(result.out.size() == large.size() + 6);
  CHECK(result.out == "first " + large);
}

TEST_CASE_METHOD(LocalFixture, "A09 input of many commands at once arrives whole", "[cases.A09]") {
  const auto sandbox = started();
  SpawnOptions options;
  options.timeout = 60s;
  const std::string input(1U << 20, 'x');
  std::vector<std::shared_ptr<Process>> processes;
  for (int i = 0; i < 24; ++i)
    processes.push_back(sandbox->spawn(shell("wc -c"), options));
  // For a while the guest takes nothing: more is to be written than waits on the way.
  const auto pause =
      sandbox->spawn(shell("kill -STOP $PPID; sleep 0.5; kill -CONT $PPID"), options);
  for (const auto& process : processes)
    process->async_write(input, [process](const Result<void>& written) {
      if (written.ok()) process->async_close_stdin([](const Result<void>&) {});
    });
  for (const auto& process : processes) {
    const auto result = process->wait();
    CHECK(result.outcome == Outcome::exited);
    CHECK(result.out == "1048576\n");
  }
  CHECK(pause->wait().success);
}

TEST_CASE_METHOD(LocalFixture, "A09 input that cannot be taken is a typed error", "[cases.A09]") {
  const auto sandbox = started();
  const auto closed = sandbox->spawn(shell("cat; sleep 20"));
  closed->close_stdin();
  const Error after_close = error_of([&] { closed->write("x"); });
  CHECK(after_close.code == Status::conflict);
  CHECK(after_close.reason == "stdin.closed");
  closed->kill();

  const auto ended = sandbox->spawn(shell("exit 3"));
  ended->wait();
  const Error after_exit = error_of([&] { ended->write("x"); });
  CHECK(after_exit.code == Status::conflict);
  CHECK(after_exit.reason == "process.ended");
  CHECK(after_exit.message.find("has already exited with code 3") != std::string::npos);

  SpawnOptions refused;
  refused.stdin_pipe = false;
  const auto without = sandbox->spawn(argv({"sleep", "20"}), refused);
  CHECK(error_of([&] { without->write("x"); }).reason == "stdin.absent");
  without->kill();
}

TEST_CASE_METHOD(LocalFixture, "A09 a command that never reads holds the writer, not the host",
                 "[cases.A09]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(argv({"sleep", "30"}));
  auto promise = std::make_shared<std::promise<Result<void>>>();
  auto written = promise->get_future();
  process->async_write(std::string(5U << 20, 'x'),
                       [promise](Result<void> r) { promise->set_value(std::move(r)); });
  CHECK(sandbox->exec({"true"}).success);
  CHECK(written.wait_for(0s) == std::future_status::timeout);
  CHECK(process->kill());
  REQUIRE(written.wait_for(10s) == std::future_status::ready);
  CHECK_FALSE(written.get().ok());
}
