// The event loop of the supervisor: edge-triggered descriptors, timers, and work for the end of
// the turn. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "sandforge/posix/fd.hpp"

namespace sandforge::guest {

// Owner of one watched descriptor. It must outlive the turn in which it is forgotten.
class Source {
 public:
  virtual ~Source() = default;
  virtual void on_ready(std::uint32_t events) = 0;  // EPOLL… bits
};

class EventLoop {
 public:
  using Timer = std::pair<std::int64_t, std::uint64_t>;  // when, and a serial; serial 0: none

  EventLoop();
  bool valid() const noexcept { return static_cast<bool>(epoll_); }

  // Edge-triggered. False with errno set.
  bool watch(int fd, std::uint32_t events, Source& source);
  void change(int fd, std::uint32_t events, Source& source);
  // Not needed for a descriptor that is the only one of its file and is closed next.
  void forget(int fd);

  // Milliseconds that pass while the program may run: time in which the whole container was frozen
  // does not count.
  std::int64_t now() const noexcept { return now_; }
  Timer at(std::int64_t when, std::function<void()> run);
  void cancel(Timer& timer);

  // Runs before the loop waits again.
  void later(std::function<void()> run) { work_.push_back(std::move(run)); }

  int run();  // until `stop`; its code
  void stop(int code) noexcept;

 private:
  void refresh(bool waited_for_timer);
  void run_timers();
  void run_work();

  posix::Fd epoll_;
  std::int64_t now_ = 0;
  std::int64_t frozen_ = 0;  // subtracted from the clock
  std::map<Timer, std::function<void()>> timers_;
  std::uint64_t next_serial_ = 1;
  std::vector<std::function<void()>> work_;
  bool stopped_ = false;
  int code_ = 0;
};

}  // namespace sandforge::guest
