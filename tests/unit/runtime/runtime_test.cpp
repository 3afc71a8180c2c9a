#include "sandforge/runtime.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <future>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/blocking_pool.hpp"

using namespace sandforge;
using namespace std::chrono_literals;

namespace {

template <class T>
T get(std::future<T> future) {
  if (future.wait_for(60s) != std::future_status::ready) throw std::runtime_error("no answer");
  return future.get();
}

// A result of a handler, as its error's code.
Handler<void> into(std::promise<Status>& promise) {
  return Handler<void>([&promise](const Result<void>& result) {
    promise.set_value(result.ok() ? Status::ok : result.error().code);
  });
}

// Fills the pool until `release` is set; every slot is busy when it returns. The work may still be
// at its end when this is gone.
class FullPool {
 public:
  FullPool(Runtime& runtime, const Lane& lane, int slots) {
    for (int i = 0; i < slots; ++i)
      runtime.post_blocking(
          lane,
          [state = state_] {
            ++state->busy;
            state->released.wait();
          },
          Handler<void>([](const Result<void>&) {}));
    while (state_->busy < slots)
      std::this_thread::yield();
  }
  void release() { state_->promise.set_value(); }

 private:
  struct State {
    std::promise<void> promise;
    const std::shared_future<void> released = promise.get_future().share();
    std::atomic<int> busy{0};
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

TEST_CASE("lane: work runs in order, one at a time, on any number of threads") {
  Runtime::Options options;
  options.io_threads = 4;
  Runtime runtime(options);
  constexpr int kLanes = 8;
  constexpr int kPosts = 2000;
  struct State {
    Lane lane;
    int next = 0;  // not atomic: the lane alone touches it
    std::atomic<bool> inside{false};
    std::atomic<int> overlaps{0};
    std::atomic<int> disorder{0};
    std::promise<void> done;
  };
  std::vector<std::unique_ptr<State>> states;
  for (int i = 0; i < kLanes; ++i) {
    states.push_back(std::make_unique<State>());
    states.back()->lane = runtime.make_lane();
  }
  std::vector<std::thread> posters;
  for (auto& state : states)
    posters.emplace_back([&state = *state] {
      for (int n = 0; n < kPosts; ++n)
        state.lane.post([&state, n] {
          if (state.inside.exchange(true)) ++state.overlaps;
          if (state.next != n) ++state.disorder;
          state.next = n + 1;
          if (!state.lane.is_current()) ++state.disorder;
          state.inside = false;
          if (state.next == kPosts) state.done.set_value();
        });
    });
  for (auto& poster : posters)
    poster.join();
  for (auto& state : states) {
    get(state->done.get_future());
    CHECK(state->overlaps == 0);
    CHECK(state->disorder == 0);
  }
}

TEST_CASE("lane: post is never inline, dispatch is on the lane itself") {
  Runtime runtime;
  const Lane lane = runtime.make_lane();
  const Lane other = runtime.make_lane();
  CHECK_FALSE(lane.is_current());
  CHECK_FALSE(Lane());
  CHECK(lane == Lane(lane));
  CHECK_FALSE(lane == other);
  std::promise<std::string> order;
  lane.post([&, text = std::make_shared<std::string>()] {
    lane.post([&order, text] { order.set_value(*text + "3"); });
    *text += "1";
    lane.dispatch([&] { *text += "2"; });
    CHECK(lane.is_current());
    CHECK_FALSE(other.is_current());
  });
  CHECK(get(order.get_future()) == "123");
}

TEST_CASE("lane: what it posts to another lane runs beside it") {
  Runtime runtime;
  const Lane one = runtime.make_lane(), other = runtime.make_lane();
  std::promise<bool> beside;
  one.post([&] {
    const auto ran = std::make_shared<std::promise<void>>();
    other.post([ran] { ran->set_value(); });
    beside.set_value(ran->get_future().wait_for(60s) == std::future_status::ready);
  });
  CHECK(get(beside.get_future()));
}

TEST_CASE("lane: takes work that can only be moved") {
  Runtime runtime;
  std::promise<int> promise;
  runtime.make_lane().post(
      [&promise, value = std::make_unique<int>(7)] { promise.set_value(*value); });
  CHECK(get(promise.get_future()) == 7);
}

TEST_CASE("timer: on its lane, after its delay, or cancelled") {
  Runtime runtime;
  const Lane lane = runtime.make_lane();
  std::promise<bool> on_lane;
  const auto start = std::chrono::steady_clock::now();
  runtime.timer(lane, 20ms, Handler<void>([&](const Result<void>& result) {
                  on_lane.set_value(result.ok() && lane.is_current());
                }));
  CHECK(get(on_lane.get_future()));
  CHECK(std::chrono::steady_clock::now() - start >= 20ms);

  std::promise<Status> cancelled;
  const auto pending = runtime.timer(lane, 1h, into(cancelled));
  pending->cancel();
  pending->cancel();
  CHECK(get(cancelled.get_future()) == Status::cancelled);

  std::promise<Status> negative;
  runtime.timer(lane, -5ms, into(negative));
  CHECK(get(negative.get_future()) == Status::ok);
  std::promise<Status> endless;
  runtime.timer(lane, std::chrono::milliseconds::max(), into(endless))->cancel();
  CHECK(get(endless.get_future()) == Status::cancelled);
}

TEST_CASE("timer: cancelled at the very moment it fires, it ends once") {
  Runtime runtime;
  const Lane lane = runtime.make_lane();
  for (int i = 0; i < 300; ++i) {
    std::promise<Status> promise;
    auto future = promise.get_future();
    const auto pending = runtime.timer(lane, std::chrono::milliseconds(i % 2), into(promise));
    std::thread([&] { pending->cancel(); }).join();
    const Status status = get(std::move(future));
    CHECK((status == Status::ok || status == Status::cancelled));
  }
}

TEST_CASE("blocking work: grows to its limit, queues beyond it") {
  Runtime::Options options;
  options.blocking_threads = 3;
  Runtime runtime(options);
  const Lane lane = runtime.make_lane();
  FullPool full(runtime, lane, 3);
  std::atomic<bool> ran{false};
  std::promise<Status> queued;
  runtime.post_blocking(
      lane, [&] { ran = true; }, into(queued));
  std::promise<Status> cancelled;
  std::atomic<bool> cancelled_ran{false};
  const auto pending = runtime.post_blocking(
      lane, [&] { cancelled_ran = true; }, into(cancelled));
  pending->cancel();
  CHECK(get(cancelled.get_future()) == Status::cancelled);
  CHECK_FALSE(ran);
  // A full pool does not hold up lanes.
  std::promise<void> moved;
  lane.post([&] { moved.set_value(); });
  get(moved.get_future());
  full.release();
  CHECK(get(queued.get_future()) == Status::ok);
  CHECK(ran);
  CHECK_FALSE(cancelled_ran);
}

TEST_CASE("blocking work: an exception is an error") {
  Runtime runtime;
  const Lane lane = runtime.make_lane();
  std::promise<std::string> message;
  runtime.post_blocking(
      lane, [] { throw std::runtime_error("disk on fire"); },
      Handler<void>(
          [&](const Result<void>& result) { message.set_value(result.error().message); }));
  CHECK(get(message.get_future()) == "blocking work failed: disk on fire");
  std::promise<Status> other;
  runtime.post_blocking(
      lane, [] { throw 3; }, into(other));
  CHECK(get(other.get_future()) == Status::internal);
}

TEST_CASE("waiting: a lane that waits holds up no other, however few threads there are") {
  Runtime::Options options;
  options.io_threads = 1;
  Runtime runtime(options);
  constexpr int kLanes = 8;
  std::vector<Lane> lanes;
  std::vector<std::promise<void>> turns(kLanes + 1);
  for (int i = 0; i < kLanes; ++i)
    lanes.push_back(runtime.make_lane());
  std::array<std::atomic<bool>, kLanes> own{};
  // Each waits for the next one, which it has posted itself.
  std::function<void(int)> begin = [&](int i) {
    if (i < kLanes) {
      lanes[i].post([&, i] {
        lanes[i].post([&, i] { own[i] = true; });
        begin(i + 1);
        runtime.while_waiting([&] {
          get(turns[i + 1].get_future());
          CHECK(lanes[i].is_current());
        });
        CHECK_FALSE(own[i]);  // its own lane has waited
        turns[i].set_value();
      });
    } else {
      runtime.make_lane().post([&] { turns[kLanes].set_value(); });
    }
  };
  begin(0);
  get(turns[0].get_future());
  std::promise<void> last;
  lanes[0].post([&] { last.set_value(); });
  get(last.get_future());
  CHECK(own[0]);
}

TEST_CASE("waiting: elsewhere it is just a call, and what it throws is thrown") {
  Runtime runtime;
  const auto here = std::this_thread::get_id();
  runtime.while_waiting([&] { CHECK(std::this_thread::get_id() == here); });
  CHECK_THROWS_AS(runtime.while_waiting([] { throw std::runtime_error("no"); }),
                  std::runtime_error);
  std::promise<bool> thrown;
  runtime.make_lane().post([&] {
    bool caught = false;
    try {
      runtime.while_waiting([] { throw std::runtime_error("no"); });
    } catch (const std::runtime_error&) {
      caught = true;
    }
    thrown.set_value(caught);
  });
  CHECK(get(thrown.get_future()));
}

TEST_CASE("runtime: its end cancels timers and tracked things, and runs what was posted") {
  std::promise<Status> timer;
  std::promise<void> posted;
  struct Tracked final : Pending {
    void cancel() noexcept override { ++cancels; }
    std::atomic<int> cancels{0};
  };
  const auto tracked = std::make_shared<Tracked>();
  const auto gone = std::make_shared<Tracked>();
  {
    Runtime runtime;
    const Lane lane = runtime.make_lane();
    runtime.timer(lane, 1h, into(timer));
    runtime.track(tracked);
    runtime.track(std::make_shared<Tracked>());
    runtime.post_blocking(
        lane, [] {},
        Handler<void>([&](const Result<void>&) { lane.post([&] { posted.set_value(); }); }));
  }
  CHECK(get(timer.get_future()) == Status::cancelled);
  CHECK(posted.get_future().wait_for(0s) == std::future_status::ready);
  CHECK(tracked->cancels == 1);
}

TEST_CASE("runtime: work that never ends does not hold its end for ever") {
  Runtime::Options options;
  options.shutdown_limit = 50ms;
  std::atomic<int> rounds{0};
  {
    Runtime runtime(options);
    const Lane lane = runtime.make_lane();
    struct Again {
      Lane lane;
      std::atomic<int>* rounds;
      void operator()() const {
        ++*rounds;
        lane.post(*this);
      }
    };
    lane.post(Again{lane, &rounds});
  }
  CHECK(rounds > 0);
}

TEST_CASE("runtime: an exception of posted work goes to the hook, and the threads go on") {
  std::promise<std::string> seen;
  Runtime::Options options;
  options.io_threads = 1;
  options.on_exception = [&](std::exception_ptr exception) {
    try {
      std::rethrow_exception(exception);
    } catch (const std::exception& e) {
      seen.set_value(e.what());
    }
  };
  Runtime runtime(options);
  const Lane lane = runtime.make_lane();
  lane.post([] { throw std::runtime_error("lost"); });
  CHECK(get(seen.get_future()) == "lost");
  std::promise<void> after;
  lane.post([&] { after.set_value(); });
  get(after.get_future());
}

TEST_CASE("runtime: its threads take no signals") {
  Runtime runtime;
  const Lane lane = runtime.make_lane();
  const auto blocked = [] {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    return sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGPIPE) == 1 &&
           sigismember(&mask, SIGSEGV) == 0;
  };
  std::promise<bool> on_lane;
  lane.post([&] { on_lane.set_value(blocked()); });
  CHECK(get(on_lane.get_future()));
  std::promise<bool> on_pool;
  runtime.post_blocking(
      lane, [&] { on_pool.set_value(blocked()); }, Handler<void>([](const Result<void>&) {}));
  CHECK(get(on_pool.get_future()));
  CHECK_FALSE(blocked());
}

namespace {

// A system that has this many threads to give.
BlockingPool::StartThread at_most(int threads) {
  return [left = std::make_shared<int>(threads)](std::function<void()> work) {
    if ((*left)-- <= 0)
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    return BlockingPool::start_thread(std::move(work));
  };
}

}  // namespace

TEST_CASE("blocking pool: without any thread a job fails and is not kept") {
  Runtime runtime;
  BlockingPool pool(4, at_most(0));
  bool ran = false;
  for (int i = 0; i < 2; ++i) {
    std::promise<Error> failed;
    pool.post(std::make_shared<BlockingJob>(
        runtime.make_lane(), [&ran] { ran = true; },
        Handler<void>(
            [&failed](const Result<void>& result) { failed.set_value(result.error()); })));
    const auto error = get(failed.get_future());
    CHECK(error.code == Status::unavailable);
    CHECK(error.reason == "runtime.no_thread");
  }
  pool.close();
  CHECK_FALSE(ran);
}

TEST_CASE("blocking pool: the end of a job may post the next one where there is one thread") {
  Runtime runtime;
  const auto lane = runtime.make_lane();
  BlockingPool pool(4, at_most(1));
  std::promise<Status> ended;
  int left = 2000;
  std::function<void()> next = [&] {
    pool.post(std::make_shared<BlockingJob>(
        lane, [] {}, Handler<void>([&](const Result<void>& result) {
          if (!result || --left == 0)
            return ended.set_value(result ? Status::ok : result.error().code);
          next();
        })));
  };
  next();
  CHECK(get(ended.get_future()) == Status::ok);
  CHECK(left == 0);
}

TEST_CASE("blocking pool: where no further thread is to be had, a job fails that would wait") {
  Runtime runtime;
  const auto lane = runtime.make_lane();
  std::array<std::promise<Status>, 2> done;
  std::promise<void> busy, released;
  BlockingPool pool(4, at_most(1));
  pool.post(std::make_shared<BlockingJob>(
      lane,
      [&] {
        busy.set_value();
        released.get_future().wait();
      },
      into(done[0])));
  get(busy.get_future());
  // The first may be waiting for this one.
  pool.post(std::make_shared<BlockingJob>(
      lane, [] {}, into(done[1])));
  CHECK(get(done[1].get_future()) == Status::unavailable);
  released.set_value();
  CHECK(get(done[0].get_future()) == Status::ok);
}

TEST_CASE("runtime: where no descriptor is left, it is not made, and says so") {
#if defined(__SANITIZE_ADDRESS__)
  WARN("SKIPPED: without descriptors of their own the sanitizers take sound objects for unsound");
#else
  Runtime().make_lane();  // what the first one of a process opens for good
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int next = ::dup(0);
  REQUIRE(next >= 0);
  ::close(next);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  std::string reason = "made";
  try {
    Runtime runtime;
  } catch (const Exception& failure) {
    reason = failure.error().reason;
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(reason == "runtime.no_descriptor");
#endif
}
