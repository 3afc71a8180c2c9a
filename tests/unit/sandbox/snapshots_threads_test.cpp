// Captures, stops, destroys and starts from many threads at once: each call is answered once.
#include <thread>

#include "fake_snapshots.hpp"
#include "fixture.hpp"

namespace sandforge {

TEST_CASE("captures from many threads, while the machine comes and goes") {
  constexpr int kRounds = 200;
  SandboxConfig config;
  config.start_patience = std::chrono::milliseconds(0);
  Fixture f(config);
  fake::Shelf shelf(*f.world);
  f.sandbox->start();
  std::atomic<int> captured{0}, nothing{0}, cancelled{0};
  std::vector<std::thread> threads;
  for (int n = 0; n < 3; ++n)
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        std::stop_source stop;
        SnapshotOptions options;
        options.stop = stop.get_token();
        auto result = later<SnapshotResult>(
            [&](auto done) { f.sandbox->async_snapshot(options, std::move(done)); });
        if (round % 3 == 0) stop.request_stop();
        const auto answer = get(result);
        if (!answer) {
          ++(answer.error().code == Status::cancelled ? cancelled : nothing);
        } else {
          ++(answer->checkpoint ? captured : nothing);
        }
      }
    });
  threads.emplace_back([&] {
    for (int round = 0; round < kRounds; ++round) {
      if (round % 2 == 0) {
        f.sandbox->stop();
      } else {
        f.sandbox->destroy();
      }
      f.sandbox->start();
    }
  });
  for (auto& thread : threads)
    thread.join();
  CHECK(captured + nothing + cancelled == 3 * kRounds);
  CHECK(f.sandbox->snapshot().checkpoint.has_value());
  f.sandbox.reset();
}

}  // namespace sandforge
