// The executor of the fake host.
#include <sandforge/testing/executor.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/consumer.hpp>

using namespace sandforge::testing;
using std::chrono::milliseconds;

namespace {

void count(void* ctx) noexcept {
  ++*static_cast<std::atomic<int>*>(ctx);
}

}  // namespace

TEST_CASE("a timer ends when the time was moved, or at once when it is cancelled") {
  Loop loop;
  Executor executor(loop);
  sf_lane* raw = nullptr;
  CHECK(executor.lane_create(&raw) == SF_OK);
  Lane& lane = Lane::of(raw);
  Result first, second;
  sf_op* op = nullptr;
  executor.timer(lane, 10, completion(first), nullptr);
  executor.timer(lane, SF_NONE, completion(second), &op);
  loop.advance(milliseconds(9));
  CHECK(first.done == 0);
  loop.advance(milliseconds(1));
  CHECK(first.done == 1);
  op->vtbl->cancel(op);
  loop.drain();
  CHECK(second.done == 1);
  CHECK(second.failure.code == SF_CANCELLED);
  op->vtbl->release(op);
  lane.release();
  CHECK(Lane::live == 0);
}

TEST_CASE("blocking work is held until the test runs it, here or on threads") {
  Loop loop;
  Executor executor(loop);
  Lane* lane = Lane::create(loop);
  executor.set_blocking(Blocking::held);
  std::atomic<int> ran{0};
  Result here, cancelled, threaded;
  executor.post_blocking(*lane, count, &ran, completion(here), nullptr);
  sf_op* op = nullptr;
  executor.post_blocking(*lane, count, &ran, completion(cancelled), &op);
  CHECK(executor.held() == 2);
  op->vtbl->cancel(op);
  executor.run_here();
  loop.drain();
  CHECK(ran == 1);
  CHECK(here.done == 1);
  CHECK(cancelled.failure.code == SF_CANCELLED);
  op->vtbl->cancel(op);  // too late
  op->vtbl->release(op);

  executor.post_blocking(*lane, count, &ran, completion(threaded), nullptr);
  CHECK(ran == 1);
  executor.release();
  CHECK(loop.run_until([&] { return threaded.done == 1; }));
  CHECK(ran == 2);
  std::vector<std::thread> threads;
  executor.take_threads(threads);
  for (auto& thread : threads)
    thread.join();
  lane->release();
  CHECK(Lane::live == 0);
  CHECK(Op::live == 0);
}
