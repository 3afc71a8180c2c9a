// B04 to B08: how commands end, and what is left of their trees.
#include <limits>
#include <stop_token>

#include "procedure.hpp"

namespace sandforge::conformance {
namespace {

void check_timed_out(const CommandResult& result) {
  CHECK(result.outcome == Outcome::timed_out);
  CHECK(result.timed_out);
  CHECK_FALSE(result.success);
  CHECK(result.exit_code == 124);
  CHECK(result.command_may_have_started);
}

// A shell that became unrecognisable to who looks at sessions and groups.
std::string escaping(const std::string& how, const std::string& file, const std::string& word) {
  return how + " sh -c 'echo $$ > " + file + "; sleep 99; :' " + word;
}

void returns_in_time(Host& host) {
  const auto sandbox = host.started();
  CommandResult result;
  const auto ticked = ticks_during(
      *sandbox, [&] { result = sh(*sandbox, "printf partial; sleep 30", limited(1s, 2s)); });
  check_timed_out(result);
  CHECK(result.out == "partial");
  CHECK(ticked > 0);
  CHECK(ticked <= ticks(30));  // the limit and the grace
}

void killed_in_time(Host& host) {
  const auto sandbox = host.started();
  CommandResult result;
  const auto ticked = ticks_during(*sandbox, [&] {
    result = sh(*sandbox, "trap '' TERM; echo up; while :; do sleep 1; done", limited(1s, 500ms));
  });
  check_timed_out(result);
  CHECK(result.killed);
  CHECK(result.out == "up\n");
  CHECK(ticked > 0);
  CHECK(ticked <= ticks(25));  // the limit, the grace and a second
}

void nothing_goes_on(Host& host) {
  const auto sandbox = host.started();
  const auto word = host.word();
  check_timed_out(sh(*sandbox, "sh -c 'sleep 2; touch late' " + word + " & wait", limited(500ms)));
  CHECK(gone(*sandbox, word));
  sandbox->exec({"sleep", "2.2"});
  CHECK_FALSE(exists(*sandbox, "late"));
}

void escaped_timeout(Host& host) {
  const auto sandbox = host.started();
  const auto word = host.word();
  const auto result =
      sh(*sandbox,
         escaping("setsid", "one", word) + " & (" + escaping("setsid", "two", word) +
             " &); while [ ! -s one ] || [ ! -s two ]; do sleep 0.02; done; "
             "touch both; sleep 60",
         limited(2s));
  check_timed_out(result);
  REQUIRE(exists(*sandbox, "both"));
  CHECK(gone(*sandbox, word));
}

void escaped_stop(Host& host) {
  const auto sandbox = host.started();
  const auto word = host.word();
  const auto result =
      sh(*sandbox, escaping("setsid", "one", word) + " >/dev/null 2>&1 & (" +
                       escaping("setsid env -i", "two", word) + " >/dev/null 2>&1 &)");
  CHECK(result.success);
  const auto one = read_pid(*sandbox, "one");
  const auto two = read_pid(*sandbox, "two");
  CHECK(runs(*sandbox, one));
  CHECK(runs(*sandbox, two));
  sandbox->stop();
  CHECK(gone_after_stop(*sandbox, word));
}

void kill_tree(Host& host) {
  const auto sandbox = host.started();
  const auto word = host.word();
  const auto process = sandbox->spawn(
      argv({"sh", "-c", "sh -c 'sleep 99; :' " + word + " & echo $! > child; sleep 99", word}));
  const auto child = read_pid(*sandbox, "child");
  CHECK(runs(*sandbox, child));
  CHECK(process->kill());
  const auto result = process->wait();
  CHECK_FALSE(result.success);
  CHECK(result.killed);
  CHECK(result.outcome != Outcome::exited);
  CHECK(gone(*sandbox, word));
  CHECK_FALSE(process->kill());
}

void cancelled_before(Host& host) {
  const auto sandbox = host.make();
  std::stop_source stop;
  stop.request_stop();
  ExecOptions options;
  options.stop = stop.get_token();
  const auto result = sh(*sandbox, "touch started", options);
  CHECK(result.outcome == Outcome::cancelled);
  CHECK_FALSE(result.success);
  CHECK_FALSE(result.exit_code.has_value());
  CHECK_FALSE(result.command_may_have_started);
  CHECK(sandbox->status() == SandboxStatus::pending);
  CHECK(nothing_runs(host));
  CHECK_FALSE(exists(*sandbox, "started"));

  CommandResult running;
  CHECK(timed([&] { running = sandbox->execute_command("sleep 10", {}, options); }) < 5s);
  CHECK_FALSE(running.success);
}

void cancelled_from_callback(Host& host) {
  const auto sandbox = host.started();
  const auto word = host.word();
  std::stop_source stop;
  ExecOptions options;
  options.stop = stop.get_token();
  options.on_stdout = [&](std::string_view) { stop.request_stop(); };
  CommandResult result;
  const auto took = timed([&] {
    result = sandbox->exec({"sh", "-c", "echo first; sleep 60; echo second", word}, options);
  });
  CHECK(result.outcome == Outcome::cancelled);
  CHECK_FALSE(result.success);
  CHECK(result.command_may_have_started);
  CHECK(result.out == "first\n");
  CHECK(took < 10s);
  CHECK(gone(*sandbox, word));
}

void cancelled_with_grace(Host& host) {
  const auto sandbox = host.started();
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
}

void cancelled_after(Host& host) {
  const auto sandbox = host.started();
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

void cancelled_wait(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(argv({"sleep", "60"}));
  std::stop_source stop;
  WaitOptions options;
  options.stop = stop.get_token();
  stop.request_stop();
  const auto result = process->wait(options);
  CHECK(result.outcome == Outcome::cancelled);
  CHECK_FALSE(process->running());
}

void spawn_cancelled_from_callback(Host& host) {
  std::stop_source stop;
  SpawnOptions options;
  options.stop = stop.get_token();
  options.on_stdout = [&](std::string_view) { stop.request_stop(); };
  const auto result = host.make()->spawn(shell("echo partial; sleep 60"), options)->wait();
  CHECK_FALSE(result.success);
  CHECK(result.out == "partial\n");
}

void spawn_cancelled_before(Host& host) {
  const auto sandbox = host.started();
  std::stop_source stop;
  stop.request_stop();
  SpawnOptions options;
  options.stop = stop.get_token();
  CHECK_THROWS_AS(sandbox->spawn(shell("touch started; sleep 60"), options), SandboxAbortError);
  CHECK_FALSE(exists(*sandbox, "started"));
}

void every_limit(Host& host) {
  const auto sandbox = host.started();
  const auto shortest = sh(*sandbox, "sleep 30", limited(1ms));
  CHECK(shortest.outcome == Outcome::timed_out);
  CHECK(shortest.exit_code == 124);
  CHECK(sh(*sandbox, "sleep 0.3; echo none", limited(0ms)).out == "none\n");
  CHECK(sh(*sandbox, "sleep 0.1; echo absent").out == "absent\n");
  CHECK(sh(*sandbox, "echo long", limited(milliseconds(std::int64_t{1} << 31))).out == "long\n");
  CHECK(sh(*sandbox, "echo max", limited(milliseconds::max(), milliseconds::max())).out == "max\n");
  CHECK_THROWS_AS(sh(*sandbox, "true", limited(-1ms)), InvalidArgumentError);
}

}  // namespace

void add_ends(Procedures& to) {
  to["ends.returns_in_time"] = returns_in_time;
  to["ends.killed_in_time"] = killed_in_time;
  to["ends.nothing_goes_on"] = nothing_goes_on;
  to["ends.escaped_timeout"] = escaped_timeout;
  to["ends.escaped_stop"] = escaped_stop;
  to["ends.kill_tree"] = kill_tree;
  to["ends.cancelled_before"] = cancelled_before;
  to["ends.cancelled_from_callback"] = cancelled_from_callback;
  to["ends.cancelled_with_grace"] = cancelled_with_grace;
  to["ends.cancelled_after"] = cancelled_after;
  to["ends.cancelled_wait"] = cancelled_wait;
  to["ends.spawn_cancelled_from_callback"] = spawn_cancelled_from_callback;
  to["ends.spawn_cancelled_before"] = spawn_cancelled_before;
  to["ends.every_limit"] = every_limit;
}

}  // namespace sandforge::conformance
