// Several coroutines at the same time, and coroutines that obey another stop.
#include <sandforge/plugin/task_group.hpp>

#include <algorithm>
#include <catch2/catch.hpp>

#include <sandforge/testing/driver.hpp>
#include "unit/plugin_layer/coroutine_fixture.hpp"

using namespace sandforge::plugin;
using namespace sandforge::test;
namespace testing = sandforge::testing;

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

Task<void> sleeps(Bench&, std::atomic<bool>& waits) {
  const Counted counted;
  waits = true;
  co_await sleep_for(hours(1));
}
Task<void> reads(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  HostProcess child = HostProcess::spawn(bench.lane(), shell("read never", true));
  waits = true;
  const std::optional<Output> piece = co_await child.read_some();
  if (piece) throw Error(Code::internal, "output of a silent process");
}
Task<void> note(std::string& log, std::string text, int rounds) {
  const Counted counted;
  for (int i = 0; i < rounds; ++i) {
    log += text;
    co_await sleep_for(milliseconds(0));
  }
}
Task<void> fail_soon(Code code) {
  co_await sleep_for(milliseconds(0));
  throw Error(code, "soon");
}
Task<void> fail_at_once() {
  throw std::runtime_error("no Error");
  co_return;
}
Task<void> three_and_none(std::string& log) {
  co_await all(note(log, "a", 2), note(log, "b", 1), note(log, "c", 0));
  co_await all(std::vector<Task<void>>());
  log += ".";
}
Task<void> one_fails(Bench& bench) {
  std::atomic<bool> waits{false};
  std::vector<Task<void>> parts;
  parts.push_back(sleeps(bench, waits));
  parts.push_back(reads(bench, waits));
  parts.push_back(fail_soon(Code::forbidden));
  parts.push_back(all(sleeps(bench, waits), sleeps(bench, waits)));
  co_await all(std::move(parts));
}
Task<void> both_fail() {
  co_await all(fail_at_once(), fail_soon(Code::gone));
}

}  // namespace

TEST_CASE("tasks side by side: all end, the first failure stops the others") {
  {
    Bench bench;
    std::string log;
    CHECK_FALSE(bench.run<void>([&] { return three_and_none(log); }).code);
    CHECK(log.substr(0, 2) == "ab");
    CHECK(std::count(log.begin(), log.end(), 'a') == 2);
    CHECK(log.back() == '.');
    CHECK(bench.run<void>([&] { return one_fails(bench); }).code == Code::forbidden);
    CHECK(bench.run<void>([] { return both_fail(); }).message == "no Error");
  }
  nothing_is_left();
}

namespace {

Task<void> after_a_stop(Bench& bench, std::string& kept) {
  const StopToken stop = co_await current_stop();
  bench.stop().request_stop(StopReason::timed_out);
  kept += stop.stop_requested() ? "stopped" : "running";
  co_await with_stop(StopToken(), Host().set_state(bench.lane(), nullptr, "cleanup", "done"));
  co_await with_stop(StopToken(), sleep_for(milliseconds(0)));
  kept += ", cleaned up";
  co_await Host().set_state(bench.lane(), nullptr, "late", "begun");
}

}  // namespace

TEST_CASE("after a stop nothing begins but what is shielded") {
  {
    Bench bench;
    std::string kept;
    const auto ended = bench.run<void>([&] { return after_a_stop(bench, kept); });
    CHECK(ended.code == Code::timeout);
    CHECK(kept == "stopped, cleaned up");
    CHECK(bench.host.state == std::map<std::string, std::string>{{"/cleanup", "done"}});
  }
  nothing_is_left();
}

namespace {

// Obeys a stop of its own, while that of the caller is not requested.
Task<void> obeys_another(StopToken other, std::string& how) {
  try {
    co_await with_stop(other, sleep_for(hours(1)));
  } catch (const Error& e) {
    how = e.message();
  }
  co_await sleep_for(milliseconds(0));
  how += ", went on";
}

}  // namespace

TEST_CASE("what obeys another stop ends by it, and its caller goes on") {
  {
    Bench bench;
    const StopSource other;
    std::string how;
    Bench::Ended<void> ended;
    bench.begin<void>(ended, [&] { return obeys_another(other.token(), how); });
    bench.host.loop.drain();
    CHECK(ended.done == 0);
    other.request_stop(StopReason::timed_out);
    REQUIRE(bench.wait([&] { return ended.done > 0; }));
    CHECK_FALSE(ended.code);
    CHECK(how == "cancelled, went on");
  }
  nothing_is_left();
}

TEST_CASE("a stop of the caller stops all of its tasks") {
  {
    Bench bench;
    std::atomic<bool> waits{false};
    Bench::Ended<void> ended;
    bench.begin<void>(ended, [&] { return all(sleeps(bench, waits), sleeps(bench, waits)); });
    REQUIRE(bench.wait([&] { return Counted::live == 2; }));
    CHECK(ended.done == 0);
    bench.stop().request_stop();
    REQUIRE(bench.wait([&] { return ended.done > 0; }));
    CHECK(ended.code == Code::cancelled);
  }
  nothing_is_left();
}
