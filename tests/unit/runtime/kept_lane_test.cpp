// A lane that the thread which woke it runs by itself.
#include "runtime/kept_lane.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include <catch2/catch.hpp>

using namespace sandforge;
using namespace std::chrono_literals;

namespace {

template <class T>
T get(std::future<T>& future) {
  REQUIRE(future.wait_for(60s) == std::future_status::ready);
  return future.get();
}
template <class T>
T get(std::future<T>&& future) {
  return get(future);
}

// Which thread runs work that is posted there now.
std::future<std::thread::id> where(const Lane& lane) {
  const auto promise = std::make_shared<std::promise<std::thread::id>>();
  auto out = promise->get_future();
  lane.post([promise] { promise->set_value(std::this_thread::get_id()); });
  return out;
}

bool is_ready(const std::future<std::thread::id>& future) {
  return future.wait_for(0s) == std::future_status::ready;
}

const auto here = [] { return std::this_thread::get_id(); };

}  // namespace

TEST_CASE("kept lane: the first idle one is run by who woke it, the others are not") {
  Runtime runtime;
  const Lane first = runtime.make_lane(), second = runtime.make_lane();
  KeptLane kept(true);
  CHECK(kept.empty());
  auto ours = where(first);
  auto also_ours = where(first);
  CHECK_FALSE(kept.empty());
  CHECK(get(where(second)) != here());
  CHECK_FALSE(is_ready(ours));
  kept.run();
  CHECK(kept.empty());
  CHECK(get(ours) == here());
  CHECK(get(also_ours) == here());
  // The next one, once that is through.
  auto next = where(runtime.make_lane());
  kept.run();
  CHECK(get(next) == here());
}

TEST_CASE("kept lane: one that is busy stays where it runs") {
  Runtime runtime;
  const Lane lane = runtime.make_lane();
  std::promise<void> begun, go_on;
  lane.post([&] {
    begun.set_value();
    go_on.get_future().wait();
  });
  get(begun.get_future());
  {
    KeptLane kept(true);
    auto later = where(lane);
    CHECK(kept.empty());
    go_on.set_value();
    kept.run();
    CHECK(get(later) != here());
  }
  KeptLane none(false);
  auto elsewhere = where(lane);
  CHECK(none.empty());
  CHECK(get(elsewhere) != here());
}

TEST_CASE("kept lane: it goes on with its own work, and waits in vain for no other lane") {
  Runtime runtime;
  const Lane lane = runtime.make_lane(), other = runtime.make_lane();
  std::future<std::thread::id> own;
  std::thread::id beside;
  KeptLane kept(true);
  lane.post([&] {
    own = where(lane);
    CHECK(lane.is_current());
    beside = get(where(other));
    CHECK_FALSE(is_ready(own));
  });
  kept.run();
  CHECK(beside != here());
  CHECK(get(own) == here());
}

TEST_CASE("kept lane: what is not run goes to the threads") {
  Runtime runtime;
  std::future<std::thread::id> later;
  {
    KeptLane kept(true);
    later = where(runtime.make_lane());
    CHECK_FALSE(kept.empty());
  }
  CHECK(get(later) != here());
}

TEST_CASE("kept lane: an exception is told like any other, and the lane goes on") {
  std::promise<void> told;
  Runtime::Options options;
  options.on_exception = [&](std::exception_ptr) { told.set_value(); };
  Runtime runtime(options);
  const Lane lane = runtime.make_lane();
  KeptLane kept(true);
  lane.post([] { throw std::runtime_error("let through"); });
  auto after = where(lane);
  kept.run();
  get(told.get_future());
  CHECK(get(after) == here());
}

TEST_CASE("kept lane: what is posted for an exception goes to the threads") {
  Lane other;
  std::future<std::thread::id> later;
  Runtime::Options options;
  options.on_exception = [&](std::exception_ptr) { later = where(other); };
  Runtime runtime(options);
  other = runtime.make_lane();
  const Lane lane = runtime.make_lane();
  KeptLane kept(true);
  lane.post([] { throw std::runtime_error("let through"); });
  kept.run();
  CHECK(get(later) != here());
}

TEST_CASE("kept lane: the end of its Runtime waits for it, and drops what has not begun") {
  Runtime::Options options;
  options.shutdown_limit = 0ms;
  auto runtime = std::make_unique<Runtime>(options);
  const Lane lane = runtime->make_lane(), idle = runtime->make_lane();
  std::promise<void> begun;
  std::atomic<bool> through{false};
  std::thread guest([&] {
    KeptLane kept(true);
    lane.post([&] {
      begun.set_value();
      for (int i = 0; i < 1000; ++i)
        std::this_thread::yield();
      through = true;
    });
    kept.run();
  });
  get(begun.get_future());
  KeptLane kept(true);
  auto never = where(idle);
  CHECK_FALSE(kept.empty());
  runtime.reset();
  CHECK(through);
  guest.join();
  kept.run();
  CHECK(kept.empty());
  CHECK_THROWS_AS(never.get(), std::future_error);  // dropped, and nobody keeps the promise
}
