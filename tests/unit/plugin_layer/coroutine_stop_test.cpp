// A stop ends a coroutine at each place where it can wait.
#include <sandforge/plugin/coroutine.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/driver.hpp>
#include "unit/plugin_layer/coroutine_fixture.hpp"

using namespace sandforge::plugin;
using namespace sandforge::test;
namespace testing = sandforge::testing;

namespace {

using std::chrono::hours;

using Waits = std::function<Task<void>(Bench&, std::atomic<bool>&)>;

Task<void> sleeps(Bench&, std::atomic<bool>& waits) {
  const Counted counted;
  waits = true;
  co_await sleep_for(hours(1));
}
Task<void> waits_for_the_pool(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  bench.host.executor.set_blocking(testing::Blocking::held);
  waits = true;
  co_await run_blocking([] {});
}
Task<void> works_in_the_pool(Bench&, std::atomic<bool>& waits) {
  const Counted counted;
  const StopToken stop = co_await current_stop();
  const auto work = [stop, &waits] {
    waits = true;
    while (!stop.wait_for(hours(1))) {
    }
    stop.throw_if_stopped();
  };
  co_await run_blocking(work);
}
Task<void> reads(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  HostProcess child = HostProcess::spawn(bench.lane(), shell("read never", true));
  waits = true;
  const std::optional<Output> piece = co_await child.read_some();
  if (piece) throw Error(Code::internal, "output of a silent process");
}
Task<void> writes(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  HostProcess child =
      HostProcess::spawn(bench.lane(), shell("echo up; exec tail -f /dev/null", true));
  const std::optional<Output> up = co_await child.read_some();
  waits = up.has_value();
  co_await child.write_all(std::string(1 << 20, 'x'));
}
Task<void> waits_for_another(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  co_await sleeps(bench, waits);
}
Task<void> waits_for_several(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  std::atomic<bool> other{false};
  co_await all(reads(bench, other), waits_for_another(bench, waits), sleeps(bench, other));
}
// The operation of somebody who ends it on a cancel only.
Task<void> waits_for_a_callback(Bench& bench, std::atomic<bool>& waits) {
  const Counted counted;
  const Lane lane = bench.lane();
  Async<void> operation(lane, [lane](auto* pending, sf_op** op, const sf_error_sink*) {
    testing::Op::give(op, [lane, pending] {
      lane.post([pending] {
        pending->fail(std::make_exception_ptr(Error(Code::cancelled, "as you wish")));
      });
    });
    return SF_OK;
  });
  waits = true;
  co_await std::move(operation);
}

void stop_while(const char* what, const Waits& waits_here, bool from_the_lane) {
  INFO(what << (from_the_lane ? ", stopped from the lane" : ", stopped from another thread"));
  {
    Bench bench;
    Bench::Ended<void> ended;
    std::atomic<bool> waits{false};
    bench.begin<void>(ended, [&] { return waits_here(bench, waits); });
    REQUIRE(bench.wait([&] { return waits.load(); }));
    bench.host.loop.drain();
    CHECK(ended.done == 0);
    CHECK(Counted::live > 0);
    if (from_the_lane) {
      bench.lane().post([&bench] { bench.stop().request_stop(); });
    } else {
      std::thread([&bench] { bench.stop().request_stop(StopReason::cancelled); }).join();
    }
    REQUIRE(bench.wait([&] { return ended.done > 0; }));
    CHECK(ended.code == Code::cancelled);
    CHECK(ended.on_lane);
    CHECK(Counted::live == 0);
    bench.host.loop.drain();
    CHECK(ended.done == 1);
    bench.host.executor.release();
  }
  nothing_is_left();
}

}  // namespace

TEST_CASE("a stop ends a coroutine at each place where it can wait") {
  const std::vector<std::pair<const char*, Waits>> places = {
      {"a timer", sleeps},
      {"queued blocking work", waits_for_the_pool},
      {"running blocking work", works_in_the_pool},
      {"the output of a process", reads},
      {"room in the input of a process", writes},
      {"another task", waits_for_another},
      {"several tasks", waits_for_several},
      {"a callback", waits_for_a_callback}};
  for (const auto& [what, waits_here] : places) {
    stop_while(what, waits_here, false);
    stop_while(what, waits_here, true);
  }
}

TEST_CASE("a coroutine whose call was stopped before its first step never begins") {
  {
    Bench bench;
    bench.stop().request_stop();
    std::atomic<bool> began{false};
    CHECK(bench.run<void>([&] { return sleeps(bench, began); }).code == Code::cancelled);
    CHECK_FALSE(began);
  }
  nothing_is_left();
}
