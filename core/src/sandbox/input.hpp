// Writes to a command's standard input that wait for room. On the lane.
#pragma once

#include <deque>
#include <string>

#include "sandforge/backend.hpp"

namespace sandforge::sandbox {

class Input {
 public:
  // More than this waits for nobody: a write that comes on top is refused.
  static constexpr std::size_t kQueueBytes = std::size_t{64} << 20;

  void write(ProcessBackend& process, std::string data, Handler<void> done);
  void close(ProcessBackend& process, Handler<void> done);
  bool closed() const noexcept { return closing_; }
  bool shut() const noexcept { return shut_; }
  // There is room again.
  void pump(ProcessBackend& process);
  // The process ended: what waits fails.
  void fail(const Error& error);

 private:
  struct Write {
    std::string data;
    std::size_t taken = 0;
    Handler<void> done;
  };

  void fail_writes(const Error& error);

  std::deque<Write> queue_;
  std::size_t queued_ = 0;
  bool closing_ = false;
  bool shut_ = false;
  std::deque<Handler<void>> closers_;
};

}  // namespace sandforge::sandbox
