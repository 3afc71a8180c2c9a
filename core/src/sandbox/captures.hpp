// The captures of one sandbox: one after the other, and whoever ends its machine waits for them.
//
// Everything on the lane. They live as long as a capture runs, also without their sandbox.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "sandbox/deadlines.hpp"
#include "sandbox/machine.hpp"
#include "sandforge/snapshots.hpp"

namespace sandforge::sandbox {

class Captures : public std::enable_shared_from_this<Captures> {
 public:
  struct Limits {
    std::chrono::milliseconds patience{0};  // then what runs is cancelled, for who waits
    std::chrono::milliseconds grace{0};     // then who waits goes on all the same
  };
  Captures(Lane lane, std::shared_ptr<Deadlines> deadlines, Limits limits)
      : lane_(std::move(lane)), deadlines_(std::move(deadlines)), limits_(limits) {}

  // Of a machine that runs now.
  void run(std::string name, std::stop_token stop, Machine machine, Handler<SnapshotResult> done);
  // Calls next once no capture runs or waits, at once where there is none.
  void settle(std::function<void()> next);

 private:
  using StopCallback = std::stop_callback<std::function<void()>>;
  struct Job {
    Job(std::string n, Machine m, Handler<SnapshotResult> d)
        : name(std::move(n)), machine(std::move(m)), done(std::move(d)) {}
    std::string name;
    Machine machine;
    Handler<SnapshotResult> done;
    std::shared_ptr<Pending> pending;
    bool cancelled = false;
    std::optional<StopCallback> on_stop;
  };

  void next_job();
  void ended(const std::shared_ptr<Job>& job, Result<std::optional<Checkpoint>> result);
  void finish(const std::shared_ptr<Job>& job, Result<SnapshotResult> result);
  static void cancel(Job& job);
  void limit_wait(std::uint64_t wait);
  void settled();

  const Lane lane_;
  const std::shared_ptr<Deadlines> deadlines_;
  const Limits limits_;
  std::deque<std::shared_ptr<Job>> jobs_;  // the first one runs
  std::vector<std::function<void()>> waiting_;
  std::uint64_t wait_ = 0;  // counts the times that somebody waited
};

}  // namespace sandforge::sandbox
