// The threads of a fake host: a loop that a test turns by hand, and lanes on it.
#pragma once

#include <sandforge/abi.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace sandforge::fake {

inline sf_str str(std::string_view text) noexcept {
  return {text.data(), text.size()};
}
inline sf_bytes bytes(std::string_view text) noexcept {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string text(sf_str value) {
  return value.ptr == nullptr ? std::string() : std::string(value.ptr, value.len);
}
inline std::string text(sf_bytes value) {
  return value.ptr == nullptr ? std::string()
                              : std::string(reinterpret_cast<const char*>(value.ptr), value.len);
}

// An error as a value.
struct Failure {
  sf_status code = SF_OK;
  std::uint32_t flags = 0;
  std::string message;
  std::string details;
  std::uint64_t retry_after_ms = SF_NONE;

  explicit operator bool() const { return code != SF_OK; }
  static Failure copy(const sf_error* error) {
    Failure f;
    if (error == nullptr) return f;
    f.code = error->code;
    f.flags = error->flags;
    f.message = text(error->message);
    f.details = text(error->details);
    f.retry_after_ms = error->retry_after_ms;
    return f;
  }
  sf_error view() const {
    sf_error e{};
    e.struct_size = sizeof e;
    e.code = code;
    e.flags = flags;
    e.message = str(message);
    e.details = str(details);
    e.retry_after_ms = retry_after_ms;
    return e;
  }
};

inline sf_status refuse(const sf_error_sink* err, sf_status code, std::string_view message) {
  if (err != nullptr) {
    const Failure f{code, 0, std::string(message), {}, SF_NONE};
    const sf_error e = f.view();
    err->report(err->ctx, &e);
  }
  return code;
}

// Tasks and timers, run by whoever calls run_until; several threads may.
class Loop {
 public:
  using Clock = std::chrono::steady_clock;

  void post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_all();
  }

  std::uint64_t at(Clock::time_point when, std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t id = ++next_timer_;
    timers_.emplace(std::pair(when, id), std::move(task));
    wake_.notify_all();
    return id;
  }

  // True when the timer had not run and will not.
  bool drop_timer(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    for (auto it = timers_.begin(); it != timers_.end(); ++it) {
      if (it->first.second == id) {
        timers_.erase(it);
        return true;
      }
    }
    return false;
  }

  // Runs tasks until done() holds: true, or false after the bound. Asks between tasks.
  template <class Done>
  bool run_until(Done done, std::chrono::seconds bound = std::chrono::seconds(60)) {
    const auto end = Clock::now() + bound;
    std::unique_lock lock(mutex_);
    for (;;) {
      lock.unlock();
      const bool over = done();
      lock.lock();
      if (over) return true;
      const auto now = Clock::now();
      if (now >= end) return false;
      if (!timers_.empty() && timers_.begin()->first.first <= now) {
        tasks_.push_back(std::move(timers_.begin()->second));
        timers_.erase(timers_.begin());
      }
      if (tasks_.empty()) {
        // done may depend on other threads that post nothing: look again soon.
        auto until = std::min(end, now + std::chrono::milliseconds(5));
        if (!timers_.empty()) until = std::min(until, timers_.begin()->first.first);
        wake_.wait_until(lock, until);
        continue;
      }
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
  }

  // Runs what is due now, and what that posts.
  void drain() {
    for (;;) {
      std::unique_lock lock(mutex_);
      if (tasks_.empty()) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::map<std::pair<Clock::time_point, std::uint64_t>, std::function<void()>> timers_;
  std::uint64_t next_timer_ = 0;
};

// A lane on the loop. Born with one reference. live counts those that are not released yet.
class Lane : public sf_lane {
 public:
  static inline std::atomic<int> live{0};

  static Lane* create(Loop& loop) { return new Lane(loop); }
  static Lane& of(sf_lane* lane) { return *static_cast<Lane*>(lane); }

  void retain() { ++refs_; }
  void release() {
    if (--refs_ == 0) delete this;
  }

  void post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
    if (!scheduled_) {
      scheduled_ = true;
      retain();
      loop_.post([this] { run_one(); });
    }
  }

  bool is_current() const { return current() == this; }
  Loop& loop() { return loop_; }

 private:
  explicit Lane(Loop& loop) : loop_(loop) {
    static constexpr sf_lane_vtbl functions = {
        sizeof(sf_lane_vtbl), [](sf_lane* self) noexcept { of(self).retain(); },
        [](sf_lane* self) noexcept { of(self).release(); },
        [](sf_lane* self, void (*fn)(void*) noexcept, void* ctx) noexcept {
          of(self).post([fn, ctx] { fn(ctx); });
        },
        [](sf_lane* self) noexcept -> std::uint32_t { return of(self).is_current() ? 1 : 0; }};
    vtbl = &functions;
    ++live;
  }
  ~Lane() { --live; }

  static Lane*& current() {
    thread_local Lane* lane = nullptr;
    return lane;
  }

  void run_one() {
    std::unique_lock lock(mutex_);
    auto task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    current() = this;
    task();
    task = nullptr;
    current() = nullptr;
    lock.lock();
    if (queue_.empty()) {
      scheduled_ = false;
      lock.unlock();
      release();
      return;
    }
    loop_.post([this] { run_one(); });
  }

  Loop& loop_;
  std::atomic<int> refs_{1};
  std::mutex mutex_;
  std::deque<std::function<void()>> queue_;
  bool scheduled_ = false;
};

// An operation of the fake host. on_cancel runs at most once, on any thread.
class Op : public sf_op {
 public:
  static inline std::atomic<int> live{0};

  // Writes the handle when the caller wants one.
  static void give(sf_op** out, std::function<void()> on_cancel) {
    if (out != nullptr) *out = new Op(std::move(on_cancel));
  }

 private:
  explicit Op(std::function<void()> on_cancel) : on_cancel_(std::move(on_cancel)) {
    static constexpr sf_op_vtbl functions = {
        sizeof(sf_op_vtbl),
        [](sf_op* self) noexcept {
          auto& op = *static_cast<Op*>(self);
          if (!op.cancelled_.exchange(true) && op.on_cancel_) op.on_cancel_();
        },
        [](sf_op* self) noexcept { delete static_cast<Op*>(self); }};
    vtbl = &functions;
    ++live;
  }
  ~Op() { --live; }

  std::function<void()> on_cancel_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace sandforge::fake
