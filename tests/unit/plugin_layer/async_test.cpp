// The result of a host service that comes later, for a caller that waits.
#include <sandforge/plugin/async.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;

namespace {

// An operation whose end the test gives, and which notes that it was begun and cancelled.
class Held {
 public:
  detail::Pending<int>* pending = nullptr;
  std::atomic<int> begun{0};
  std::atomic<int> cancelled{0};

  Async<int> operation(const Lane& lane) {
    return {lane, [this](auto* to, sf_op** op, const sf_error_sink*) {
              pending = to;
              testing::Op::give(op, [this] {
                ++cancelled;
                pending->fail(detail::plain_error(SF_CANCELLED, "as you wish"));
              });
              ++begun;
              return SF_OK;
            }};
  }
};

Async<int> ends_at_once(const Lane& lane, int value) {
  return {lane, [value](auto* pending, sf_op** op, const sf_error_sink*) {
            *op = nullptr;
            pending->succeed_with([value] {
              if (value < 0) throw Error(Code::invalid, "negative");
              return value;
            });
            return SF_OK;
          }};
}

Async<void> refused(const Lane& lane) {
  return {lane, [](auto*, sf_op**, const sf_error_sink* err) {
            const sf_error e = detail::plain_error(SF_FORBIDDEN, "not you");
            err->report(err->ctx, &e);
            return SF_FORBIDDEN;
          }};
}

Async<void> throws(const Lane& lane) {
  return {lane, [](auto*, sf_op**, const sf_error_sink*) -> sf_status {
            throw Error(Code::unsupported, "no such service");
          }};
}

}  // namespace

TEST_CASE("an operation begins with get, and never when it is dropped before") {
  Ground ground;
  Held held;
  { const Async<int> dropped = held.operation(ground.lane); }
  CHECK(held.begun == 0);
  std::thread ends([&] {
    while (held.begun == 0)
      std::this_thread::yield();
    held.pending->succeed(42);
  });
  CHECK(held.operation(ground.lane).get() == 42);
  ends.join();
}

TEST_CASE("a result that is there at once, an error, a refusal") {
  Ground ground;
  CHECK(ends_at_once(ground.lane, 7).get() == 7);
  CHECK(thrown_by([&] { ends_at_once(ground.lane, -1).get(); }) == "1 negative");
  CHECK(thrown_by([&] { refused(ground.lane).get(); }) == "7 not you");
  CHECK(thrown_by([&] { throws(ground.lane).get(); }) == "12 no such service");
  CHECK(ends_at_once(ground.lane, 7).lane().get() == ground.lane.get());
}

TEST_CASE("a stop cancels the operation, and get throws what it then ends with") {
  Ground ground;
  const StopSource stop;
  Held held;
  ground.off_lane([&] {
    std::thread stops([&] {
      while (held.begun == 0)
        std::this_thread::yield();
      stop.request_stop();
    });
    CHECK(thrown_by([&] { held.operation(ground.lane).get(stop.token()); }) == "13 as you wish");
    stops.join();
    // A stop that came before lets the operation begin and cancels it then.
    CHECK(thrown_by([&] { held.operation(ground.lane).get(stop.token()); }) == "13 as you wish");
  });
  CHECK(held.cancelled == 2);
}

TEST_CASE("get on a lane throws before anything has begun") {
  Ground ground;
  Held held;
  std::string refused_there;
  ground.on_lane([&] { refused_there = thrown_by([&] { held.operation(ground.lane).get(); }); });
  CHECK(refused_there == "16 a blocking call on a lane: use a coroutine, or a pool thread");
  CHECK(held.begun == 0);
}
