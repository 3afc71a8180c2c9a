// Stops: reasons, callbacks, waiting.
#include <sandforge/plugin/stop_token.hpp>

#include <atomic>
#include <catch2/catch.hpp>

#include "thrown.hpp"

using namespace sandforge::plugin;
using sandforge::test::code_of;

TEST_CASE("a stop is requested once, with its reason, and runs what waits for it") {
  const StopSource source;
  const StopToken token = source.token();
  int ran = 0;
  {
    const StopCallback dropped(token, [&] { ran += 100; });
  }
  const StopCallback first(token, [&] { ++ran; });
  CHECK_FALSE(token.wait_for(std::chrono::milliseconds(0)));
  CHECK(source.request_stop(StopReason::timed_out));
  CHECK_FALSE(source.request_stop());
  const StopCallback late(token, [&] { ++ran; });
  CHECK(ran == 2);
  CHECK(token.wait_for(std::chrono::hours(1)));
  CHECK(code_of([&] { token.throw_if_stopped(); }) == Code::timeout);
  CHECK_FALSE(StopToken().stop_requested());
  StopToken().throw_if_stopped();
}

TEST_CASE("a callback may drop itself, and a drop elsewhere waits for it") {
  const StopSource source;
  auto own = std::make_unique<std::optional<StopCallback>>();
  own->emplace(source.token(), [&] { own->reset(); });
  source.request_stop();
  CHECK_FALSE(own->has_value());

  const StopSource other;
  std::atomic<int> phase{0};
  auto slow = std::make_unique<StopCallback>(other.token(), [&] {
    phase = 1;
    while (phase != 2)
      std::this_thread::yield();
    phase = 3;
  });
  std::thread requests([&] { other.request_stop(); });
  while (phase != 1)
    std::this_thread::yield();
  std::thread lets_go([&] { phase = 2; });
  slow.reset();
  CHECK(phase == 3);
  requests.join();
  lets_go.join();
}

TEST_CASE(
    "a wait ends with the request, a callback is run without the lock, each reason has a code") {
  const StopSource source;
  const StopToken token = source.token();
  StopReason inside = StopReason::none;
  const StopCallback asks(token, [&] { inside = token.reason(); });
  std::thread requests([&] { source.request_stop(); });
  CHECK(token.wait_for(std::chrono::hours(1)));
  requests.join();
  CHECK(inside == StopReason::cancelled);
  CHECK(source.stop_requested());
  CHECK(code_of([] { throw_if_stopped(StopReason::cancelled); }) == Code::cancelled);
  CHECK(code_of([] { throw_if_stopped(StopReason::timed_out); }) == Code::timeout);
  throw_if_stopped(StopReason::none);
}

TEST_CASE("a token that never stops only waits, and its callbacks are never run") {
  bool ran = false;
  {
    const StopCallback never(StopToken(), [&] { ran = true; });
    CHECK_FALSE(StopToken().wait_for(std::chrono::milliseconds(0)));
  }
  CHECK_FALSE(ran);
  CHECK(StopToken().reason() == StopReason::none);
}

TEST_CASE("a token outlives its source, and no callback keeps anything alive once it has run") {
  std::optional<StopSource> source;
  source.emplace();
  const StopToken token = source->token();
  const auto held = std::make_shared<int>(1);
  const StopCallback holds(token, [held] { ++*held; });
  source->request_stop();
  CHECK(*held == 2);
  CHECK(held.use_count() == 1);
  source.reset();
  CHECK(token.stop_requested());
}
