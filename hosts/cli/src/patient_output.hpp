// Our standard output and error, written for readers that may be slow, or read nothing at all.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace sandforge::cli {

// Waits for a reader as long as it likes, until somebody wants the end: then for two seconds in
// which it takes nothing, and for ten in all. From any thread.
//
// The descriptors are shared with whoever gave them to us and keep their flags.
class PatientOutput {
 public:
  PatientOutput();
  ~PatientOutput();
  PatientOutput(const PatientOutput&) = delete;
  PatientOutput& operator=(const PatientOutput&) = delete;

  // All of it, also when it comes in pieces. False: errno says why; ECANCELED: it was waited for
  // long enough. descriptor: 1 or 2.
  bool write_all(int descriptor, std::string_view data) const;
  // From now on patience ends.
  void hurry() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end(Clock::time_point last) const;
  bool wait_writable(int descriptor, Clock::time_point last) const;

  std::array<int, 3> opened_{-1, -1, -1};  // the same pipe or terminal, not blocking
  int wake_ = -1;
  std::atomic<std::int64_t> hurried_at_{0};  // 0: not yet; nanoseconds of the steady clock
};

}  // namespace sandforge::cli
