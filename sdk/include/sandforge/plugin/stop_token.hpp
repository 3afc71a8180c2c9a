// Requests to end early. Like std::stop_token of C++20, with a reason, for C++17.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "error.hpp"

namespace sandforge::plugin {

enum class StopReason : std::uint8_t { none, cancelled, timed_out };

inline void throw_if_stopped(StopReason why) {
  if (why == StopReason::timed_out) throw Error(Code::timeout, "the time limit has passed");
  if (why == StopReason::cancelled) throw Error(Code::cancelled, "the operation was cancelled");
}

namespace detail {

// Callbacks run once, on the thread that requests the stop, without the lock held.
class StopState {
 public:
  StopReason reason() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return reason_;
  }

  bool request(StopReason why) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (reason_ != StopReason::none) return false;
    reason_ = why;
    runner_ = std::this_thread::get_id();
    changed_.notify_all();
    while (!callbacks_.empty()) {
      Callback next = std::move(callbacks_.front());
      callbacks_.pop_front();
      running_ = next.id;
      lock.unlock();
      next.run();
      next.run = nullptr;
      lock.lock();
      running_ = 0;
      changed_.notify_all();
    }
    return true;
  }

  // 0 when the stop had been requested before: then the callback was not kept.
  std::uint64_t add(std::function<void()>& callback) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (reason_ != StopReason::none) return 0;
    callbacks_.push_back(Callback{++next_id_, std::move(callback)});
    return next_id_;
  }

  // Afterwards the callback neither runs nor will, unless this is called from inside it.
  void remove(std::uint64_t id) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (auto it = callbacks_.begin(); it != callbacks_.end(); ++it) {
      if (it->id == id) {
        callbacks_.erase(it);
        return;
      }
    }
    if (runner_ == std::this_thread::get_id()) return;
    changed_.wait(lock, [&] { return running_ != id; });
  }

  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> time) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return reason_ != StopReason::none; });
  }

 private:
  struct Callback {
    std::uint64_t id;
    std::function<void()> run;
  };
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  StopReason reason_ = StopReason::none;
  std::list<Callback> callbacks_;
  std::uint64_t next_id_ = 0;
  std::uint64_t running_ = 0;
  std::thread::id runner_;
};

}  // namespace detail

// Asks whether an operation should end. Cheap to copy; thread-safe.
class StopToken {
 public:
  // Never stops.
  StopToken() = default;

  bool stop_requested() const { return reason() != StopReason::none; }
  StopReason reason() const { return state_ ? state_->reason() : StopReason::none; }

  // Throws Code::cancelled or Code::timeout once a stop was requested.
  void throw_if_stopped() const { plugin::throw_if_stopped(reason()); }

  // Waits, on a pool thread: true when a stop was requested within the time.
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> time) const {
    if (state_) return state_->wait_for(time);
    detail::StopState never;
    return never.wait_for(time);
  }

 private:
  friend class StopSource;
  friend class StopCallback;
  explicit StopToken(std::shared_ptr<detail::StopState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::StopState> state_;
};

// Makes the request. The first one counts.
class StopSource {
 public:
  StopToken token() const { return StopToken(state_); }
  // Runs the callbacks that are registered. False when it had been requested before.
  bool request_stop(StopReason why = StopReason::cancelled) const { return state_->request(why); }
  bool stop_requested() const { return state_->reason() != StopReason::none; }

 private:
  std::shared_ptr<detail::StopState> state_ = std::make_shared<detail::StopState>();
};

/*
 * A function to run when a stop is requested, on the requesting thread; at once when it was
 * requested before. It must not throw nor block. The destructor waits for it when it runs on
 * another thread.
 */
class StopCallback {
 public:
  StopCallback(const StopToken& token, std::function<void()> callback) : state_(token.state_) {
    if (!state_) return;
    id_ = state_->add(callback);
    if (id_ == 0) callback();
  }
  ~StopCallback() {
    if (id_ != 0) state_->remove(id_);
  }
  StopCallback(const StopCallback&) = delete;
  StopCallback& operator=(const StopCallback&) = delete;

 private:
  std::shared_ptr<detail::StopState> state_;
  std::uint64_t id_ = 0;
};

}  // namespace sandforge::plugin
