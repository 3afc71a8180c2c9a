// B01 to B09: how commands end, and what is left of their trees.
#include <csignal>
#include <limits>
#include <stop_token>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

ExecOptions limited(milliseconds timeout, milliseconds grace = 2000ms) {
  ExecOptions options;
  options.timeout = timeout;
  options.grace = grace;
  return options;
}

void check_timed_out(const CommandResult& result) {
  CHECK(result.outcome == Outcome::timed_out);
  CHECK(result.timed_out);
  CHECK_FALSE(result.success);
  CHECK(result.exit_code == 124);
  CHECK(result.command_may_have_started);
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "B01 death by a signal is never an exit of 0", "[cases.B01]") {
  const auto sandbox = started();
  const auto killed = sh(*sandbox, "kill -9 $$");
  CHECK(killed.outcome == Outcome::signaled);
  CHECK(killed.signal == SIGKILL);
  CHECK(killed.exit_code == 137);
  CHECK_FALSE(killed.success);
  const auto terminated = sh(*sandbox, "kill -TERM $$");
  CHECK(terminated.outcome == Outcome::signaled);
  CHECK(terminated.signal == SIGTERM);
  CHECK(terminated.exit_code == 143);
  CHECK_FALSE(terminated.success);
  // Neither was a signal of ours.
  CHECK_FALSE(killed.killed);
  CHECK_FALSE(terminated.killed);
}

TEST_CASE_METHOD(LocalFixture, "B02 a time limit keeps the partial output", "[cases.B02]") {
  const auto sandbox = started();
  CommandResult result;
  const auto took = timed([&] { result = sh(*sandbox, "printf partial; sleep 30", limited(1s)); });
  check_timed_out(result);
  CHECK(result.out == "partial");
  CHECK(result.err.empty());
  CHECK(result.killed);
  CHECK(took >= 1s);
  CHECK(took < 10s);
}

TEST_CASE_METHOD(LocalFixture, "B03 who ignores the first signal is killed", "[cases.B03]") {
  const auto sandbox = started();
  CommandResult result;
  const auto took = timed([&] {
    result = sh(*sandbox, "trap '' TERM; echo up; while :; do sleep 1; done", limited(1s, 500ms));
  });
  check_timed_out(result);
  CHECK(result.out == "up\n");
  CHECK(result.signal == SIGKILL);
  CHECK(result.killed);
  CHECK(took >= 1500ms);
  CHECK(took < 11s);
}

TEST_CASE_METHOD(LocalFixture, "B03 who ends by itself at the first signal has timed out as well",
                 "[cases.B03]") {
  const auto sandbox = started();
  const auto result =
      sh(*sandbox, "trap 'echo bye; exit 7' TERM; while :; do sleep 0.05; done", limited(300ms));
  check_timed_out(result);
  CHECK(result.out == "bye\n");
  CHECK_FALSE(result.killed);
}

TEST_CASE_METHOD(LocalFixture, "B04 nothing of a timed-out command goes on afterwards",
                 "[cases.B04]") {
  const auto sandbox = started();
  check_timed_out(sh(*sandbox, "(sleep 2; touch late) & wait", limited(500ms)));
  CHECK(only_guests());
  sandbox->exec({"sleep", "2.2"});
  CHECK_FALSE(fs::exists(folder() / "late"));
}

TEST_CASE_METHOD(LocalFixture, "B05 those that left the session die with a timed-out command",
                 "[cases.B05]") {
  const auto sandbox = started();
  const std::string escape = "sh -c 'echo $$ > %; exec sleep 99'";
  const auto named = [&](const std::string& file) {
    std::string text = escape;
    return text.replace(text.find('%'), 1, file);
  };
  const auto result = sh(*sandbox,
                         "setsid " + named("one") + " & (setsid " + named("two") +
                             " &); while [ ! -s one ] || [ ! -s two ]; do sleep 0.02; done; "
                             "touch both; sleep 60",
                         limited(2s));
  check_timed_out(result);
  REQUIRE(fs::exists(folder() / "both"));
  const pid_t one = read_pid(folder() / "one");
  const pid_t two = read_pid(folder() / "two");
  CHECK(eventually([&] { return !alive(one) && !alive(two); }));
  CHECK(only_guests());
}

TEST_CASE_METHOD(LocalFixture, "B05 those that left the session die with stop", "[cases.B05]") {
  const auto sandbox = started();
  const auto result = sh(*sandbox,
                         "setsid sh -c 'echo $$ > one; exec sleep 99' >/dev/null 2>&1 & "
                         "(setsid env -i sh -c 'echo $$ > two; exec sleep 99' >/dev/null 2>&1 &)");
  CHECK(result.success);
  const pid_t one = read_pid(folder() / "one");
  const pid_t two = read_pid(folder() / "two");
  CHECK(alive(one));
  CHECK(alive(two));
  sandbox->stop();
  CHECK(eventually([&] { return !alive(one) && !alive(two); }));
}

TEST_CASE_METHOD(LocalFixture, "B06 kill takes the whole tree, once", "[cases.B06]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(argv({"sh", "-c", "sleep 99 & echo $! > child; sleep 99"}));
  const pid_t child = read_pid(folder() / "child");
  const auto leader = static_cast<pid_t>(process->pid());
  CHECK(alive(leader));
  CHECK(process->kill());
  const auto result = process->wait();
  CHECK_FALSE(result.success);
  CHECK(result.killed);
  CHECK(result.signal == SIGKILL);
  CHECK(eventually([&] { return !alive(child) && !alive(leader); }));
  CHECK_FALSE(process->kill());
  CHECK(only_guests());
}

TEST_CASE_METHOD(LocalFixture, "B07 cancelled before it starts, nothing runs", "[cases.B07]") {
  const auto sandbox = make();
  std::stop_source stop;
  stop.request_stop();
  ExecOptions options;
  options.stop = stop.get_token();
  const auto result = sh(*sandbox, "touch started", options);
  CHECK(result.outcome == Outcome::cancelled);
  CHECK_FALSE(result.success);
  CHECK_FALSE(result.exit_code);
  CHECK_FALSE(result.command_may_have_started);
  CHECK(sandbox->status() == SandboxStatus::pending);
  CHECK(nothing_runs());
  CHECK_FALSE(fs::exists(folder()));
}

TEST_CASE_METHOD(LocalFixture, "B07 cancelled from the first output, it ends with what came",
                 "[cases.B07]") {
  const auto sandbox = started();
  std::stop_source stop;
  ExecOptions options;
  options.stop = stop.get_token();
  options.on_stdout = [&](std::string_view) { stop.request_stop(); };
  CommandResult result;
  const auto took =
      timed([&] { result = sh(*sandbox, "echo first; sleep 60; echo second", options); });
  CHECK(result.outcome == Outcome::cancelled);
  CHECK_FALSE(result.success);
  CHECK(result.command_may_have_started);
  CHECK(result.out == "first\n");
  CHECK(took < 10s);
  CHECK(only_guests());
}

TEST_CASE_METHOD(LocalFixture, "B07 cancelled, it has the grace that its caller gave",
                 "[cases.B07]") {
  const auto sandbox = started();
  std::stop_source stop;
  ExecOptions options;
  options.grace = 60s;
  options.stop = stop.get_token();
  options.on_stdout = [&](std::string_view) { stop.request_stop(); };
  // Longer than the grace of a caller that names none.
  const auto result = sh(*sandbox,
                         "trap 'sleep 3; echo tidied; exit 0' TERM; echo ready; "
                         "while :; do sleep 0.1; done",
                         options);
  CHECK(result.out == "ready\ntidied\n");
  CHECK(only_guests());
}

TEST_CASE_METHOD(LocalFixture, "B07 cancelled after the end, nothing happens", "[cases.B07]") {
  const auto sandbox = started();
  std::stop_source stop;
  SpawnOptions options;
  options.stop = stop.get_token();
  const auto process = sandbox->spawn(argv({"echo", "done"}), options);
  const auto result = process->wait();
  stop.request_stop();
  CHECK(result.outcome == Outcome::exited);
  const auto again = process->wait();
  CHECK(again.outcome == Outcome::exited);
  CHECK(again.out == "done\n");
  CHECK(sandbox->exec({"true"}).success);
}

TEST_CASE_METHOD(LocalFixture, "B07 a cancelled wait ends its process", "[cases.B07]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(argv({"sleep", "60"}));
  std::stop_source stop;
  WaitOptions options;
  options.stop = stop.get_token();
  stop.request_stop();
  const auto result = process->wait(options);
  CHECK(result.outcome == Outcome::cancelled);
  CHECK_FALSE(process->running());
}

TEST_CASE_METHOD(LocalFixture, "B08 every time limit means something", "[cases.B08]") {
  const auto sandbox = started();
  const auto shortest = sh(*sandbox, "sleep 30", limited(1ms));
  CHECK(shortest.outcome == Outcome::timed_out);
  CHECK(shortest.exit_code == 124);
  CHECK(sh(*sandbox, "sleep 0.3; echo none", limited(0ms)).out == "none\n");
  CHECK(sh(*sandbox, "sleep 0.1; echo absent").out == "absent\n");
  CHECK(sh(*sandbox, "echo long", limited(milliseconds(std::int64_t{1} << 31))).out == "long\n");
  CHECK(sh(*sandbox, "echo max", limited(milliseconds::max(), milliseconds::max())).out == "max\n");
  CHECK_THROWS_AS(sh(*sandbox, "true", limited(-1ms)), InvalidArgumentError);
}

TEST_CASE_METHOD(LocalFixture, "B08 the sandbox's limit holds where the call names none",
                 "[cases.B08]") {
  SandboxConfig config;
  config.id = "s";
  config.timeout = 300ms;
  const auto sandbox = make(config);
  sandbox->start();
  check_timed_out(sh(*sandbox, "sleep 30"));
  CHECK(sh(*sandbox, "sleep 0.6; echo call", limited(30s)).out == "call\n");
  CHECK(sh(*sandbox, "sleep 0.6; echo none", limited(0ms)).out == "none\n");
}

TEST_CASE_METHOD(LocalFixture, "B09 after a timed-out command the next one works at once",
                 "[cases.B09]") {
  const auto sandbox = started();
  check_timed_out(sh(*sandbox, "sleep 30", limited(100ms)));
  CommandResult result;
  CHECK(timed([&] { result = sandbox->exec({"true"}); }) < 5s);
  CHECK(result.success);
}

TEST_CASE_METHOD(LocalFixture, "B10 a command whose connection breaks is never an exit of 0",
                 "[cases.B10]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(shell("echo up; sleep 60"));
  REQUIRE(eventually([&] { return process->out() == "up\n"; }));
  const pid_t guest = guest_of(folder().string());
  REQUIRE(guest != 0);
  REQUIRE(::kill(guest, SIGKILL) == 0);
  const auto result = process->wait();
  CHECK(result.outcome == Outcome::transport_lost);
  CHECK_FALSE(result.success);
  CHECK_FALSE(result.exit_code);
  CHECK(result.command_may_have_started);
  CHECK(result.out == "up\n");
  REQUIRE(result.error);
  CHECK(result.error->may_have_started);
  // Its tree ends with the guest that owned it.
  CHECK(eventually([&] { return !alive(static_cast<pid_t>(process->pid())); }));
}

TEST_CASE_METHOD(LocalFixture, "B10 what a lost guest left behind ends with the session",
                 "[cases.B10]") {
  const auto sandbox = started();
  const auto process =
      sandbox->spawn(shell("setsid sh -c 'echo $$ > escaped; exec sleep 99' & sleep 60"));
  const pid_t escaped = read_pid(folder() / "escaped");
  REQUIRE(::kill(guest_of(folder().string()), SIGKILL) == 0);
  CHECK(process->wait().outcome == Outcome::transport_lost);
  sandbox->destroy();
  CHECK(eventually([&] { return !alive(escaped); }));
}
