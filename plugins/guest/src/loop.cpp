#include "loop.hpp"

#include <sys/epoll.h>
#include <algorithm>
#include <cerrno>

#include "sandforge/posix/system.hpp"

namespace sandforge::guest {
namespace {

// A timer that comes this late means that we were frozen, not that the machine is busy.
constexpr std::int64_t kFrozenMs = 5000;
constexpr int kBatch = 128;

}  // namespace

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), now_(posix::monotonic_ms()) {}

bool EventLoop::watch(int fd, std::uint32_t events, Source& source) {
  struct epoll_event event = {};
  event.events = events | EPOLLET;
  event.data.ptr = &source;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void EventLoop::change(int fd, std::uint32_t events, Source& source) {
  struct epoll_event event = {};
  event.events = events | EPOLLET;
  event.data.ptr = &source;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::forget(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::Timer EventLoop::at(std::int64_t when, std::function<void()> run) {
  const Timer timer{when, next_serial_++};
  timers_.emplace(timer, std::move(run));
  return timer;
}

void EventLoop::cancel(Timer& timer) {
  if (timer.second != 0) timers_.erase(timer);
  timer = {};
}

void EventLoop::stop(int code) noexcept {
  stopped_ = true;
  code_ = code;
}

void EventLoop::refresh(bool waited_for_timer) {
  const std::int64_t clock = posix::monotonic_ms() - frozen_;
  const std::int64_t due = timers_.empty() ? clock : timers_.begin()->first.first;
  if (waited_for_timer && clock - due > kFrozenMs) frozen_ += clock - due;
  now_ = posix::monotonic_ms() - frozen_;
}

void EventLoop::run_timers() {
  while (!timers_.empty() && timers_.begin()->first.first <= now_) {
    const auto run = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    run();
  }
}

void EventLoop::run_work() {
  // What is added meanwhile runs in the next turn, so that reading a fast writer cannot starve the
  // rest.
  std::vector<std::function<void()>> work;
  work.swap(work_);
  for (const auto& run : work)
    run();
}

int EventLoop::run() {
  struct epoll_event events[kBatch];
  while (!stopped_) {
    int timeout = -1;
    if (!work_.empty()) {
      timeout = 0;
    } else if (!timers_.empty()) {
      const std::int64_t wait = timers_.begin()->first.first - now_;
      timeout = static_cast<int>(std::clamp<std::int64_t>(wait, 0, 3600 * 1000));
    }
    const int n = ::epoll_wait(epoll_.get(), events, kBatch, timeout);
    refresh(timeout > 0);
    for (int i = 0; i < n; ++i)
      static_cast<Source*>(events[i].data.ptr)->on_ready(events[i].events);
    run_timers();
    run_work();
  }
  return code_;
}

}  // namespace sandforge::guest
