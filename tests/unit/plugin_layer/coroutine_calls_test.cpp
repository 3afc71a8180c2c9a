// A plugin of coroutines under the calls of a host: one done for each call, errors with all their
// parts, releases at any time.
#include <sandforge/plugin/coroutine.hpp>

#include <catch2/catch.hpp>

#include "unit/plugin_layer/coroutine_stage.hpp"

using namespace sandforge::plugin;
using namespace sandforge::test;
namespace testing = sandforge::testing;

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

Task<void> throws_an_error(Script&, StopToken) {
  const Counted counted;
  co_await sleep_for(milliseconds(0));
  throw Error(Code::rate_limited, "too fast")
      .detail("httpStatus", 429)
      .may_have_started(true)
      .retry_after(milliseconds(1500));
}
Task<void> throws_before_it_waits(Script&, StopToken) {
  throw std::runtime_error("not one of ours");
  co_return;
}
Task<void> throws_a_number(Script&, StopToken) {
  co_await sleep_for(milliseconds(0));
  throw 5;
}
Task<void> throws_from_below(Script& it, StopToken stop) {
  const Counted counted;
  co_await throws_an_error(it, stop);
}

}  // namespace

TEST_CASE("what a coroutine throws reaches the host with all of its parts, once") {
  CoStage stage;
  for (auto destroy : {throws_an_error, throws_from_below}) {
    stage.it.destroy = destroy;
    const auto result = stage.driver->run(&sf_sandbox_vtbl::destroy);
    CHECK(result.done == 1);
    CHECK(result.failure.code == SF_RATE_LIMITED);
    CHECK(result.failure.message == "too fast");
    CHECK(result.failure.details == R"({"httpStatus":429})");
    CHECK(result.failure.flags == SF_ERROR_MAY_HAVE_STARTED);
    CHECK(result.failure.retry_after_ms == 1500);
  }
  stage.it.destroy = throws_before_it_waits;
  CHECK(stage.driver->run(&sf_sandbox_vtbl::destroy).failure.code == SF_INTERNAL);
  CHECK(stage.driver->run(&sf_sandbox_vtbl::destroy).failure.message == "not one of ours");
  stage.it.destroy = throws_a_number;
  CHECK(stage.driver->run(&sf_sandbox_vtbl::destroy).failure.code == SF_INTERNAL);
  const auto stopped = stage.driver->run(&sf_sandbox_vtbl::stop);
  CHECK(stopped.failure.code == SF_CONFLICT);
  CHECK(stopped.done == 1);
  stage.close();
}

namespace {

// destroy with its handle, as a host that may cancel.
class Destroying {
 public:
  testing::Result result;
  sf_op* op = nullptr;
  bool inside = false;

  explicit Destroying(CoStage& stage) {
    stage.driver->call([&] {
      sf_sandbox* sandbox = stage.driver->sandbox;
      CHECK(sandbox->vtbl->destroy(sandbox, testing::completion(result), &op, nullptr) == SF_OK);
      inside = result.done > 0;
    });
  }
};

Task<void> sleeps_long(Script& it, StopToken) {
  const Counted counted;
  it.waits = true;
  co_await sleep_for(hours(1));
}
Task<void> ends_at_once(Script&, StopToken) {
  co_return;
}

}  // namespace

TEST_CASE("done comes once and never from inside the call, also with cancels before and after") {
  CoStage stage;
  stage.it.destroy = ends_at_once;
  Destroying quick(stage);
  CHECK_FALSE(quick.inside);
  REQUIRE(stage.driver->wait([&] { return quick.result.done > 0; }));
  CHECK_FALSE(quick.result.failure);
  quick.op->vtbl->cancel(quick.op);
  stage.host.loop.drain();
  CHECK(quick.result.done == 1);
  quick.op->vtbl->release(quick.op);

  stage.it.destroy = sleeps_long;
  Destroying cancelled(stage);
  REQUIRE(stage.driver->wait([&] { return stage.it.waits.load(); }));
  std::thread([&] {
    cancelled.op->vtbl->cancel(cancelled.op);
    cancelled.op->vtbl->cancel(cancelled.op);
  }).join();
  REQUIRE(stage.driver->wait([&] { return cancelled.result.done > 0; }));
  CHECK(cancelled.result.failure.code == SF_CANCELLED);
  cancelled.op->vtbl->release(cancelled.op);
  stage.host.loop.drain();
  CHECK(cancelled.result.done == 1);

  // Cancelled before its first step, and without a handle left.
  stage.it.waits = false;
  Destroying early(stage);
  early.op->vtbl->cancel(early.op);
  early.op->vtbl->release(early.op);
  REQUIRE(stage.driver->wait([&] { return early.result.done > 0; }));
  CHECK(early.result.failure.code == SF_CANCELLED);
  stage.close();
}

TEST_CASE("a sandbox that is released while it is suspended ends its call first") {
  CoStage stage;
  stage.it.destroy = sleeps_long;
  Destroying held(stage);
  REQUIRE(stage.driver->wait([&] { return stage.it.waits.load(); }));
  stage.driver->release();
  CHECK(stage.it.live == 1);
  CHECK(held.result.done == 0);
  held.op->vtbl->cancel(held.op);
  REQUIRE(stage.driver->wait([&] { return held.result.done > 0; }));
  held.op->vtbl->release(held.op);
  stage.host.loop.drain();
  CHECK(held.result.failure.code == SF_CANCELLED);
  CHECK(stage.it.live == 0);
  stage.close();
}
