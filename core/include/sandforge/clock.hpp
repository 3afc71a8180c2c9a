// Time behind an interface, so that tests can turn it by hand.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace sandforge {

// Thread rule: every function from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t now_ns() const noexcept = 0;         // since the Unix epoch
  virtual std::uint64_t monotonic_ns() const noexcept = 0;  // from some fixed point, never back
};

std::shared_ptr<const Clock> system_clock();

// Stands still until it is moved.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::int64_t unix_ns = 0) : now_(unix_ns) {}
  std::int64_t now_ns() const noexcept override { return now_.load(); }
  std::uint64_t monotonic_ns() const noexcept override { return monotonic_.load(); }
  void advance(std::chrono::nanoseconds by) noexcept {
    now_ += by.count();
    monotonic_ += static_cast<std::uint64_t>(by.count());
  }

 private:
  std::atomic<std::int64_t> now_;
  std::atomic<std::uint64_t> monotonic_{0};
};

}  // namespace sandforge
