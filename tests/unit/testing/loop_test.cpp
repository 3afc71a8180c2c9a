// The loop of the fake host: time by hand, lanes, operations.
#include <sandforge/testing/loop.hpp>

#include <catch2/catch.hpp>

using namespace sandforge::testing;
using std::chrono::hours;
using std::chrono::seconds;

TEST_CASE("time stands still until it is moved, and timers run each at its time") {
  Loop loop;
  const std::int64_t begin = loop.now();
  std::vector<std::int64_t> at;
  const auto note = [&] { at.push_back((loop.now() - begin) / 1'000'000'000); };
  loop.after(seconds(3), note);
  loop.after(seconds(1), [&] {
    note();
    loop.after(seconds(1), note);  // due on the way too
  });
  loop.after(hours(1), note);
  CHECK(loop.timers() == 3);
  CHECK_FALSE(loop.run_until([&] { return !at.empty(); }));
  CHECK(loop.now() == begin);
  loop.advance(seconds(4));
  CHECK(at == std::vector<std::int64_t>{1, 2, 3});
  CHECK(loop.now() - begin == 4'000'000'000);
  loop.advance(hours(1) - seconds(4));
  CHECK(at.back() == 3600);
  CHECK(loop.timers() == 0);
}

TEST_CASE("skipping goes to the next timer when nothing else is left, and never past done") {
  Loop loop;
  loop.set_time(Time::skipping);
  int ran = 0;
  loop.after(hours(1), [&] { ++ran; });
  loop.after(hours(2), [&] { ++ran; });
  CHECK(loop.run_until([&] { return ran == 1; }));
  CHECK(loop.since_start() == hours(1));
  CHECK(loop.timers() == 1);
  CHECK_FALSE(loop.run_until([&] { return ran == 3; }));
  CHECK(ran == 2);
}

TEST_CASE("what goes on outside is waited for, and moves no time") {
  Loop loop;
  loop.set_time(Time::skipping);
  bool early = false;
  const auto timer = loop.after(hours(1), [&] { early = true; });
  std::atomic<bool> go{false};
  int posted = 0;
  std::thread worker([&, busy = Loop::Outside(loop)] {
    while (!go)
      std::this_thread::yield();
    loop.post([&] { ++posted; });
  });
  loop.post([&] { go = true; });
  CHECK(loop.run_until([&] { return posted == 1; }));
  CHECK_FALSE(early);
  worker.join();
  CHECK(loop.drop_timer(timer));
  CHECK_FALSE(loop.drop_timer(timer));
}

TEST_CASE("real time passes by itself, and is kept when it is stopped") {
  Loop loop;
  loop.set_time(Time::real);
  bool ran = false;
  loop.after(std::chrono::milliseconds(1), [&] { ran = true; });
  CHECK(loop.run_until([&] { return ran; }));
  loop.set_time(Time::by_hand);
  const auto then = loop.since_start();
  CHECK(then >= std::chrono::milliseconds(1));
  CHECK(loop.since_start() == then);
}

TEST_CASE("a lane runs one task at a time, in order, and knows when it is current") {
  Loop loop;
  Lane* lane = Lane::create(loop);
  Lane* other = Lane::create(loop);
  std::string order;
  lane->post([&] {
    order += lane->is_current() && !other->is_current() ? "a" : "!";
    lane->post([&] { order += "c"; });
  });
  lane->post([&] { order += "b"; });
  CHECK(order.empty());
  loop.drain();
  CHECK(order == "abc");
  CHECK_FALSE(lane->is_current());
  CHECK(Lane::live == 2);
  lane->release();
  other->release();
  CHECK(Lane::live == 0);
}

TEST_CASE("an operation is cancelled once, and only given to who wants it") {
  int cancelled = 0;
  Op::give(nullptr, [&] { ++cancelled; });
  CHECK(Op::live == 0);
  sf_op* op = nullptr;
  Op::give(&op, [&] { ++cancelled; });
  CHECK(Op::live == 1);
  op->vtbl->cancel(op);
  op->vtbl->cancel(op);
  op->vtbl->release(op);
  CHECK(cancelled == 1);
  CHECK(Op::live == 0);
}
