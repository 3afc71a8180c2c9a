// A07 and A09: what a command leaves running, and what it reads.
#include <algorithm>
#include <atomic>
#include <future>

#include "procedure.hpp"

namespace sandforge::conformance {
namespace {

constexpr auto kPatience = 10s;  // where a command that waited for its child would need 30 s
// Of 100 ms, until a command returns in spite of its child.
constexpr std::size_t kTicks = ticks(25);

// Runs it, and looks whether the child that it left lives until stop.
void leaves_child(Host& host, const std::string& text, const std::string& word) {
  const auto sandbox = host.started();
  CommandResult result;
  ExecOptions options;
  options.max_retained_bytes = 1U << 16;
  // Looked for as it passes: what is kept of a flood may be without it.
  std::string passing;
  bool greeted = false;
  options.on_stdout = [&](std::string_view piece) {
    passing += piece;
    greeted = greeted || passing.find("hi\n") != std::string::npos;
    passing.erase(0, passing.size() - std::min<std::size_t>(passing.size(), 2));
  };
  const auto ticked =
      ticks_during(*sandbox, [&] { result = sh(*sandbox, text + " & echo hi", options); });
  CHECK(result.outcome == Outcome::exited);
  CHECK(result.exit_code == 0);
  CHECK(greeted);
  CHECK(ticked <= kTicks);
  CHECK(running_with(*sandbox, word) > 0);
  CHECK(sandbox->exec({"echo", "next"}).out == "next\n");
  CHECK(running_with(*sandbox, word) > 0);
  sandbox->stop();
  CHECK(gone_after_stop(*sandbox, word));
}

void sleeping(Host& host) {
  const auto word = host.word();
  leaves_child(host, "sh -c 'sleep 30; :' " + word, word);
  const auto sandbox = host.started("t");
  CHECK(sh(*sandbox, "sleep 30 & echo hi").out == "hi\n");
}

void flooding(Host& host) {
  const auto word = host.word();
  leaves_child(host, "yes " + word, word);
}

void ticking(Host& host) {
  const auto sandbox = host.started();
  const auto word = host.word();
  CommandResult result;
  const auto ticked = ticks_during(*sandbox, [&] {
    result = sh(*sandbox, "sh -c 'while :; do echo t >> ticks; echo t; sleep .1; done' " + word +
                              " & echo hi");
  });
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("hi\n") != std::string::npos);
  CHECK(ticked <= kTicks);
  // It still writes into pipes that nobody listens to, and is not blocked.
  const auto ticks = read_file(*sandbox, "ticks").size();
  CHECK(eventually([&] { return read_file(*sandbox, "ticks").size() > ticks + 8; }));
  sandbox->stop();
  CHECK(gone_after_stop(*sandbox, word));
}

void without_credit(Host& host) {
  const auto sandbox = host.started();
  const auto word = host.word();
  SpawnOptions options;
  options.manual_credit = true;
  options.window = 64;
  options.max_retained_bytes = 1U << 16;
  const auto process =
      sandbox->spawn(shell("echo $$ > leader; echo hi; yes " + word + " &"), options);
  const auto leader = read_pid(*sandbox, "leader");
  REQUIRE(eventually([&] { return !runs(*sandbox, leader); }));
  REQUIRE(eventually([&] { return process->out().size() == 64; }));
  // The time for output to come counts only while credit is open.
  CHECK(sandbox->exec({"sleep", "2.5"}).success);
  CHECK(running_with(*sandbox, word) > 0);
  CHECK(process->running());

  process->grant(kUnlimited / 2);
  CommandResult result;
  CHECK(timed([&] { result = process->wait(); }) < kPatience);
  CHECK(result.exit_code == 0);
  CHECK(running_with(*sandbox, word) > 0);
  sandbox->stop();
  CHECK(gone_after_stop(*sandbox, word));
}

void input_whole(Host& host) {
  const auto sandbox = host.started();
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

void input_of_many(Host& host) {
  const auto sandbox = host.started();
  SpawnOptions options;
  options.timeout = 60s;
  const std::string input(1U << 20, 'x');
  std::vector<std::shared_ptr<Process>> processes;
  for (int i = 0; i < 24; ++i)
    processes.push_back(sandbox->spawn(shell("wc -c"), options));
  for (const auto& process : processes)
    process->async_write(input, [process](const Result<void>& written) {
      if (written.ok()) process->async_close_stdin([](const Result<void>&) {});
    });
  for (const auto& process : processes) {
    const auto result = process->wait();
    CHECK(result.outcome == Outcome::exited);
    CHECK(std::stoul("0" + result.out.substr(result.out.find_first_not_of(' '))) == input.size());
  }
}

void input_refused(Host& host) {
  const auto sandbox = host.started();
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

void input_never_read(Host& host) {
  const auto sandbox = host.started();
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

}  // namespace

void add_background(Procedures& to) {
  to["background.sleeping"] = sleeping;
  to["background.ticking"] = ticking;
  to["background.flooding"] = flooding;
  to["background.without_credit"] = without_credit;
  to["background.input_whole"] = input_whole;
  to["background.input_of_many"] = input_of_many;
  to["background.input_refused"] = input_refused;
  to["background.input_never_read"] = input_never_read;
}

}  // namespace sandforge::conformance
