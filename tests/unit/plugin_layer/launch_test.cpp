// The blocking style: on pool threads, stopped wherever it waits.
#include <sandforge/plugin/launch.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "stage.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;
using std::chrono::hours;

TEST_CASE("stops of blocking calls: cancel, time limit, a call that waits, queued work") {
  Stage stage;
  stage.it.run = [&](Sandbox& box, ProcessIo io) {
    io.started("p");
    stage.it.began = true;
    box.host().sleep(box.lane(), hours(1)).get(io.stop());
    return Exit::exited(0);
  };
  const auto cancelled = stage.spawn({});
  REQUIRE(stage.driver->wait([&] { return stage.it.began.load(); }));
  cancelled->stream->vtbl->cancel(cancelled->stream);
  stage.end(*cancelled);
  CHECK(cancelled->exit.outcome == SF_EXIT_CANCELLED);

  testing::CommandLine line;
  line.timeout_ms = 1;
  const auto late = stage.spawn(line);
  stage.end(*late);
  CHECK(late->exit.outcome == SF_EXIT_TIMED_OUT);

  std::atomic<bool> ran{false};
  stage.it.stop = [&](Sandbox&, StopToken) { ran = true; };
  stage.host.executor.set_blocking(testing::Blocking::held);
  testing::Result result;
  sf_op* op = nullptr;
  stage.driver->call([&] {
    sf_sandbox* box = stage.driver->sandbox;
    CHECK(box->vtbl->stop(box, testing::completion(result), &op, nullptr) == SF_OK);
  });
  op->vtbl->cancel(op);
  op->vtbl->release(op);
  REQUIRE(stage.driver->wait([&] { return result.done > 0; }));
  CHECK(result.failure.code == SF_CANCELLED);
  stage.host.executor.release();
  CHECK_FALSE(ran);
}

TEST_CASE("a blocking function runs on a pool thread, and its end comes on the lane") {
  Ground ground;
  std::string end;
  const auto done = [&](const std::exception_ptr& error, const int* value) {
    end = ground.lane.is_current() ? "on " : "off ";
    if (value != nullptr) end += std::to_string(*value);
    if (error) end += thrown_by([&] { std::rethrow_exception(error); });
  };
  const auto launch = [&](const StopToken& stop, const std::function<int()>& fn) {
    end.clear();
    ground.on_lane([&] { Blocking::launch<int>(ground.lane, stop, fn, done); });
    REQUIRE(ground.wait([&] { return !end.empty(); }));
    return end;
  };
  CHECK(launch(StopToken(), [&] { return ground.lane.is_current() ? 1 : 2; }) == "on 2");
  CHECK(launch(StopToken(), []() -> int { throw Error(Code::gone, "gone"); }) == "on 3 gone");
  ground.host.executor.set_blocking(testing::Blocking::held);
  const StopSource stop;
  stop.request_stop();
  bool ran = false;
  CHECK(launch(stop.token(), [&] { return (ran = true) ? 1 : 0; }) == "on 13 cancelled");
  ground.host.executor.release();
  ground.host.join();
  CHECK_FALSE(ran);
  CHECK(Blocking::ready(5) == 5);
}

TEST_CASE("what the conversion of a value throws is told instead of it") {
  std::string told;
  const auto tell = [&](const sf_error* e) {
    told += e == nullptr ? "value " : testing::text(e->message) + " ";
    if (e == nullptr) throw Error(Code::no_space, "no room");
  };
  detail::settle(nullptr, tell);
  CHECK(told == "value no room ");
  detail::settle(std::make_exception_ptr(Error(Code::gone, "gone")), tell);
  CHECK(told == "value no room gone ");
}

TEST_CASE("an operation ends in one completion, with a handle that cancels it") {
  Ground ground;
  testing::Result result;
  sf_op* op = nullptr;
  std::atomic<bool> waits{false};
  const auto work = [&waits](const StopToken& stop) {
    waits = true;
    while (!stop.wait_for(hours(1))) {
    }
    stop.throw_if_stopped();
  };
  ground.on_lane(
      [&] { detail::operate_void<Blocking>(ground.lane, testing::completion(result), &op, work); });
  REQUIRE(ground.wait([&] { return waits.load(); }));
  CHECK(result.done == 0);
  op->vtbl->cancel(op);
  op->vtbl->release(op);
  REQUIRE(ground.wait([&] { return result.done > 0; }));
  CHECK(result.failure.code == SF_CANCELLED);
  ground.host.loop.drain();
  CHECK(result.done == 1);
}

TEST_CASE("a stream is filled by a function and ends with it, also when it throws or never runs") {
  Ground ground;
  const auto run = [&](const std::function<void(Io&)>& fn) {
    testing::Consumer host(3);
    host.grant_back = false;
    const sf_stream_events events = host.events();
    ground.on_lane(
        [&] { detail::open_stream<Blocking>(ground.lane, 3, &events, &host.stream, fn); });
    host.grant(100);
    REQUIRE(ground.wait([&] { return host.done > 0; }));
    CHECK(host.rules_kept());
    host.stream->vtbl->release(host.stream);
    return host.out + (host.failure ? "; " + host.failure.message : "");
  };
  CHECK(run([](Io& io) { io.write("a whole text"); }) == "a whole text");
  CHECK(run([](Io& io) {
          io.write("half");
          throw Error(Code::transport_lost, "lost");
        }) == "half; lost");
  ground.host.absent = {SF_SERVICE_EXECUTOR};
  detail::services().fill(&ground.host);
  CHECK(run([](Io& io) { io.write("never"); }) == "; the host does not offer " SF_SERVICE_EXECUTOR
                                                  ", or the plugin's manifest does not name it");
}
