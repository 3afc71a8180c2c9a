// Answers: once, on the lane, never from inside the call.
#include <sandforge/plugin/reply.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "stage.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;

TEST_CASE("a reply that nobody gives is given by itself, and a second one is none") {
  Stage stage;
  stage.it.spawn = [](Sandbox&, Spawn& spawn) {
    spawn.accept([](const ProcessIo& io) {
      io.on_signal([io](std::int32_t number, SignalScope, Reply reply) {
        if (number == 1) return;
        reply.ok();
        reply.fail(Error(Code::internal, "too late"));
        io.finish(Exit::exited(0));
      });
      io.started("p");
    });
  };
  const auto running = stage.spawn({});
  REQUIRE(stage.driver->wait([&] { return running->started > 0; }));
  testing::Result first;
  testing::Result second;
  stage.driver->call([&] {
    sf_process* p = running->process;
    CHECK(p->vtbl->signal(p, 1, 0, testing::completion(first), nullptr, nullptr) == SF_OK);
    CHECK(p->vtbl->signal(p, 2, 0, testing::completion(second), nullptr, nullptr) == SF_OK);
    CHECK(first.done + second.done == 0);
  });
  REQUIRE(stage.driver->wait([&] { return first.done + second.done == 2; }));
  CHECK(first.failure.message == "the plugin gave no answer");
  CHECK_FALSE(second.failure);
  stage.end(*running);
  stage.host.loop.drain();
  CHECK(first.done == 1);
  CHECK(second.done == 1);
  CHECK_FALSE(second.failure);
}

TEST_CASE("an answer is heard on the lane, after the call, whoever gives it") {
  Ground ground;
  class Heard {
   public:
    Lane lane;
    int on_lane = 0;
    int off_lane = 0;
  } heard;
  heard.lane = ground.lane;
  const sf_completion done{&heard, [](void* ctx, const sf_error*) noexcept {
                             auto& h = *static_cast<Heard*>(ctx);
                             ++(h.lane.is_current() ? h.on_lane : h.off_lane);
                           }};
  Reply from_a_thread(ground.lane, done);
  std::thread([&] {
    from_a_thread.ok();
    from_a_thread.ok();  // the first one counts
  }).join();
  CHECK(heard.on_lane == 0);
  ground.on_lane([&] {
    Reply here(ground.lane, done);
    here.fail(Error(Code::gone, "x"));
    CHECK(heard.on_lane == 1);
  });
  ground.host.loop.drain();
  CHECK(heard.on_lane == 2);
  CHECK(heard.off_lane == 0);
  heard.lane = Lane();
}

TEST_CASE("the handle of a call requests its stop, also when the answer is there") {
  Ground ground;
  testing::Result result;
  sf_op* op = nullptr;
  {
    Reply reply(ground.lane, testing::completion(result));
    reply.give(&op);
    const StopToken stop = reply.stop();
    Reply moved = std::move(reply);  // what was moved from answers nothing
    CHECK_FALSE(stop.stop_requested());
    op->vtbl->cancel(op);
    CHECK(stop.reason() == StopReason::cancelled);
    moved.give(nullptr);  // a host that wants no handle
    moved.fail(std::make_exception_ptr(Error(Code::cancelled, "as you wish").detail("a", 1)));
  }
  op->vtbl->cancel(op);
  op->vtbl->release(op);
  ground.host.loop.drain();
  CHECK(result.done == 1);
  CHECK(result.failure.message == "as you wish");
  CHECK(result.failure.details == R"({"a":1})");
}
