// The threads and the clock of a fake host: a loop that a test turns by hand, and lanes on it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "values.hpp"

namespace sandforge::testing {

// How the time of a loop passes.
enum class Time : std::uint8_t {
  by_hand,   // only by advance
  skipping,  // also to the next timer, when nothing else is left to do
  real       // as on the wall, and by advance
};

/*
 * Tasks and timers, run by whoever calls run_until, drain or advance; several threads may. All
 * functions are thread-safe.
 *
 * A test whose plugin blocks on pool threads until a timer ends needs Time::real, or a second
 * thread: such a thread is busy, so no time is skipped.
 */
class Loop {
 public:
  using Duration = std::chrono::nanoseconds;

  // Something that goes on outside of the loop, such as a thread: until it is gone, there may still
  // be something to wait for.
  class Outside {
   public:
    explicit Outside(Loop& loop) : loop_(&loop) { loop.outside_by(1); }
    Outside(Outside&& other) noexcept : loop_(std::exchange(other.loop_, nullptr)) {}
    Outside& operator=(Outside&&) = delete;
    ~Outside() {
      if (loop_ != nullptr) loop_->outside_by(-1);
    }

   private:
    Loop* loop_;
  };

  void set_time(Time how) {
    const std::lock_guard lock(mutex_);
    advanced_ = elapsed();
    born_ = Clock::now();
    time_ = how;
    wake_.notify_all();
  }
  // Nanoseconds since the Unix epoch, and since the loop was made.
  std::int64_t now() const { return 1'700'000'000'000'000'000 + since_start().count(); }
  Duration since_start() const {
    const std::lock_guard lock(mutex_);
    return elapsed();
  }

  void post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_all();
  }

  // Posts the task once the time has passed. The id is for drop_timer.
  std::uint64_t after(Duration delay, std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t id = ++next_timer_;
    timers_.emplace(std::pair(elapsed() + delay, id), std::move(task));
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
  std::size_t timers() const {
    const std::lock_guard lock(mutex_);
    return timers_.size();
  }

  /*
   * Runs tasks, and timers that are due, until done() holds, which is asked between tasks. False
   * when it does not hold in the end: at once when nothing is left that could happen, and after the
   * bound of real time while threads are at work or the time is real.
   */
  template <class Done>
  bool run_until(Done done, std::chrono::seconds bound = std::chrono::seconds(60)) {
    const auto end = Clock::now() + bound;
    for (;;) {
      if (done()) return true;
      if (Clock::now() >= end) return false;
      if (run_one()) continue;
      std::unique_lock lock(mutex_);
      if (!tasks_.empty()) continue;
      if (outside_ == 0 && time_ != Time::real) {
        if (time_ == Time::by_hand || timers_.empty()) {
          lock.unlock();
          return done();
        }
        advanced_ = std::max(advanced_, timers_.begin()->first.first);
        continue;
      }
      // done may depend on threads that post nothing: look again soon.
      auto wait = std::chrono::duration_cast<Duration>(std::chrono::milliseconds(5));
      if (time_ == Time::real && !timers_.empty())
        wait = std::min(wait, timers_.begin()->first.first - elapsed());
      wake_.wait_for(lock, wait);
    }
  }

  // Runs the tasks that are there, and what they post.
  void drain() {
    while (run_one()) {
    }
  }

  // Moves the time on and runs the timers that are due on the way, each at its time, and all tasks.
  void advance(Duration by) {
    drain();
    for (Duration left = by;;) {
      {
        const std::lock_guard lock(mutex_);
        Duration step = left;
        if (!timers_.empty())
          step = std::clamp(timers_.begin()->first.first - elapsed(), Duration(0), left);
        advanced_ += step;
        left -= step;
        take_due();
        if (tasks_.empty() && left.count() == 0) return;
      }
      drain();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  void outside_by(int change) {
    const std::lock_guard lock(mutex_);
    outside_ += change;
    wake_.notify_all();
  }
  Duration elapsed() const {
    return time_ == Time::real ? advanced_ + (Clock::now() - born_) : advanced_;
  }
  void take_due() {
    while (!timers_.empty() && timers_.begin()->first.first <= elapsed()) {
      tasks_.push_back(std::move(timers_.begin()->second));
      timers_.erase(timers_.begin());
    }
  }
  bool run_one() {
    std::unique_lock lock(mutex_);
    take_due();
    if (tasks_.empty()) return false;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    ++outside_;  // of other threads that turn the loop
    lock.unlock();
    task();
    task = nullptr;
    outside_by(-1);
    return true;
  }

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::map<std::pair<Duration, std::uint64_t>, std::function<void()>> timers_;
  std::uint64_t next_timer_ = 0;
  int outside_ = 0;
  Time time_ = Time::by_hand;
  Duration advanced_{0};
  Clock::time_point born_ = Clock::now();
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
  // The end of an operation, told in a task of its own.
  void complete(sf_completion done, Failure failure = {}) {
    post([done, failure = std::move(failure)] {
      const sf_error error = failure.view();
      done.done(done.ctx, failure ? &error : nullptr);
    });
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

}  // namespace sandforge::testing
