#include <thread>

#include "fixture.hpp"

namespace sandforge {

TEST_CASE("many threads run commands on a sandbox that nobody started") {
  Fixture f;
  constexpr int kThreads = 8;
  constexpr int kEach = 50;
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const std::string text = std::to_string(t) + "-" + std::to_string(i);
        if (f.sandbox->execute_command("echo " + text).out == text + "\n") ++good;
      }
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(good == kThreads * kEach);
  CHECK(f.world->machine_count() == 1);
  CHECK(f.world->counts().starts == 1);
}

}  // namespace sandforge
