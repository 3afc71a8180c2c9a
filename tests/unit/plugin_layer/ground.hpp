// A fake host with one lane, for tests of the layer without a plugin around it. Nothing of it may
// be left over at the end.
#pragma once

#include <sandforge/plugin/lane.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/driver.hpp>

namespace sandforge::test {

class Ground {
 public:
  testing::Host host;
  plugin::Lane lane;

  Ground() {
    host.loop.set_time(testing::Time::real);
    host.process.real = true;
    plugin::detail::services().fill(&host);
    lane = plugin::Lane::create();
  }
  ~Ground() {
    host.join();
    host.loop.drain();
    lane = plugin::Lane();
    host.loop.drain();
    CHECK(testing::Lane::live == 0);
    CHECK(testing::Op::live == 0);
    CHECK(testing::Process::live == 0);
  }
  Ground(const Ground&) = delete;
  Ground& operator=(const Ground&) = delete;

  template <class Done>
  bool wait(Done done) {
    return host.loop.run_until(done);
  }
  // fn() on the lane.
  template <class Fn>
  void on_lane(Fn fn) {
    bool ran = false;
    testing::Lane::of(lane.get()).post([&] {
      fn();
      ran = true;
    });
    REQUIRE(wait([&] { return ran; }));
  }
  // fn() on a thread that may block, while the loop turns.
  template <class Fn>
  void off_lane(Fn fn) {
    std::atomic<bool> ran{false};
    std::thread thread([&] {
      fn();
      ran = true;
    });
    const bool in_time = wait([&] { return ran.load(); });
    thread.join();
    REQUIRE(in_time);
  }
};

}  // namespace sandforge::test
