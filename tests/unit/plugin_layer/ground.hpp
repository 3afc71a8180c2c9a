// A fake host with one lane, for tests of the layer without a plugin around it. Nothing of it may
// be left over at the end.
#pragma once

#include <sandforge/plugin/lane.hpp>

#include <catch2/catch.hpp>

#include "abi/rehearsal/driver.hpp"

namespace sandforge::test {

class Ground {
 public:
  fake::Host host;
  plugin::Lane lane;

  Ground() {
    plugin::detail::services().fill(&host);
    lane = plugin::Lane::create();
  }
  ~Ground() {
    host.join();
    host.loop.drain();
    lane = plugin::Lane();
    host.loop.drain();
    CHECK(fake::Lane::live == 0);
    CHECK(fake::Op::live == 0);
    CHECK(fake::Process::live == 0);
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
    fake::Lane::of(lane.get()).post([&] {
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
