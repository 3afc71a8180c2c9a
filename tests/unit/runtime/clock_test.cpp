#include "sandforge/clock.hpp"

#include <catch2/catch.hpp>

using namespace sandforge;
using namespace std::chrono_literals;

TEST_CASE("clock: the system's is after 2024 and never goes back") {
  const auto clock = system_clock();
  CHECK(clock->now_ns() > 1'704'067'200'000'000'000);
  std::uint64_t last = clock->monotonic_ns();
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t now = clock->monotonic_ns();
    CHECK(now >= last);
    last = now;
  }
}

TEST_CASE("clock: by hand") {
  ManualClock clock(100);
  CHECK(clock.now_ns() == 100);
  CHECK(clock.monotonic_ns() == 0);
  clock.advance(3us);
  CHECK(clock.now_ns() == 3100);
  CHECK(clock.monotonic_ns() == 3000);
}
