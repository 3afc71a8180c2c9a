// Task: a coroutine of a plugin, and the loop that runs the coroutines of one call on its lane.
#pragma once

#include <coroutine>

#include "async.hpp"

namespace sandforge::plugin {
namespace detail {

/*
 * Runs the coroutines of one call, one at a time, on one lane. A coroutine that awaits another one,
 * or that ends, does not call the other: it names it as the next one and returns to the loop in
 * run(). So neither a long loop of awaits nor a deep chain of tasks uses the stack, whatever the
 * optimiser makes of symmetric transfer.
 */
class Runner {
 public:
  explicit Runner(Lane lane) noexcept : lane_(std::move(lane)) {}
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  const Lane& lane() const noexcept { return lane_; }
  void next(std::coroutine_handle<> coroutine) noexcept { next_ = coroutine; }
  // The outermost coroutine has ended.
  void end() noexcept { over_ = true; }

  // On the lane, in a task of its own. The runner may be gone afterwards.
  void run(std::coroutine_handle<> first) noexcept {
    next_ = first;
    while (next_)
      std::exchange(next_, nullptr).resume();
    if (over_) finished();
  }

 protected:
  ~Runner() = default;
  virtual void finished() noexcept = 0;

 private:
  const Lane lane_;
  std::coroutine_handle<> next_;
  bool over_ = false;
};

/*
 * Continues one coroutine, once, through its lane. set() may come on any thread and before the
 * coroutine waits: then it does not wait at all.
 */
class Wake {
 public:
  Wake() = default;
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  bool is_set() const noexcept { return state_ == State::set; }
  void set() noexcept {
    if (state_.exchange(State::set) != State::waiting) return;
    const Lane lane = runner_->lane();  // the runner may end before post has returned
    lane.get()->vtbl->post(
        lane.get(), [](void* ctx) noexcept { static_cast<Wake*>(ctx)->run(); }, this);
  }
  // For a task of its own on the lane: continues the coroutine at once.
  void set_here() noexcept {
    if (state_.exchange(State::set) == State::waiting) run();
  }
  // False when it was set before: the coroutine goes on at once.
  bool wait(Runner& runner, std::coroutine_handle<> coroutine) noexcept {
    runner_ = &runner;
    coroutine_ = coroutine;
    State expected = State::idle;
    return state_.compare_exchange_strong(expected, State::waiting);
  }

 private:
  enum class State : std::uint8_t { idle, waiting, set };
  void run() noexcept { runner_->run(coroutine_); }

  std::atomic<State> state_{State::idle};
  Runner* runner_ = nullptr;
  std::coroutine_handle<> coroutine_;
};

// Tags of current_lane() and current_stop().
class ThisLane {};
class ThisStop {};

class PromiseBase;
template <class T>
class Promise;
template <class T>
class AsyncAwaiter;
template <class T>
class TaskAwaiter;
class WakeAwaiter;
class GroupAwaiter;
class Group;

// A value that is there.
template <class T>
class Ready {
 public:
  explicit Ready(T value) : value_(std::move(value)) {}
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  T await_resume() { return std::move(value_); }

 private:
  T value_;
};

}  // namespace detail

/*
 * A coroutine that ends in a T or in an exception. It begins when it is awaited, once, as
 * co_await std::move(task) or directly from the call that made it; dropped before, it never runs.
 * Everything of it runs on the lane of the call that it belongs to: no locks are needed between
 * coroutines of one sandbox, but other coroutines run while one waits.
 *
 * It may await tasks, Async operations of the host, and the functions of coroutine.hpp; for other
 * callbacks make an Async. A stop of the call cancels the operation that is waited for: the wait
 * ends when the operation has ended, usually with Code::cancelled. Once a stop was requested no
 * operation begins; use with_stop(StopToken(), ...) for what must still be done.
 *
 * Parameters are copied into the coroutine when it is called. Take them by value, and never views:
 * the caller's may be gone when the coroutine begins. Captures of a lambda are not copied: do not
 * write a coroutine as a lambda with captures.
 */
template <class T>
class [[nodiscard]] Task {
 public:
  class promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  // For the layer.
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Handle handle() const {
    if (handle_) return handle_;
    throw Error(Code::internal, "a task was used after it was moved from");
  }

 private:
  Handle handle_;
};

// The lane on which this coroutine runs: const Lane lane = co_await current_lane();
inline detail::ThisLane current_lane() noexcept {
  return {};
}
// The stop that this coroutine obeys.
inline detail::ThisStop current_stop() noexcept {
  return {};
}

}  // namespace sandforge::plugin

#include "impl/task_promise.hpp"
