// How much one plugin may log: a bucket of records that fills with time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace sandforge::services {

// Above what a plugin of good behaviour ever writes; the host's own records are not counted.
inline constexpr std::uint64_t kLogBurst = 1000;
inline constexpr std::uint64_t kLogPerSecond = 200;

// Thread rule: every function from any thread.
class LogBucket {
 public:
  // Takes a record out at that time of a monotonic clock. Nothing: there was none. Else how many
  // found none since the last one that did.
  std::optional<std::uint64_t> take(std::uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    // The bucket is full again at full_at_. Never farther away than when it is empty now: the clock
    // may be another one than before.
    full_at_ = std::clamp(full_at_, now_ns, now_ns + kLogBurst * kOneNs);
    if (full_at_ - now_ns > (kLogBurst - 1) * kOneNs) {
      ++lost_;
      return std::nullopt;
    }
    full_at_ += kOneNs;
    return std::exchange(lost_, 0);
  }

 private:
  static constexpr std::uint64_t kOneNs = 1'000'000'000 / kLogPerSecond;
  std::mutex mutex_;
  std::uint64_t full_at_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace sandforge::services
