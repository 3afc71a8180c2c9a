// Threads, lanes, timers and blocking work: what everything asynchronous in core runs on.
// Source: the thread rule of sandforge/abi.h (rule 6).
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>

#include "sandforge/handler.hpp"

namespace sandforge {

namespace detail {

class Context;  // what the threads of a Runtime run

// A move-only piece of work.
struct Task {
  virtual ~Task() = default;
  virtual void run() = 0;
};

template <class F>
struct TaskOf final : Task {
  explicit TaskOf(F f) : work(std::move(f)) {}
  void run() override { work(); }
  F work;
};

}  // namespace detail

// A serial queue. Copies are the same queue. Work runs on the Runtime's threads, one piece at a
// time, in order, never inside post. A lane may outlive its Runtime: what is posted then does not
// run, it is dropped. Thread rule: every function from any thread.
class Lane {
 public:
  Lane() = default;

  // Takes any callable without arguments, also one that can only be moved.
  template <class F>
  void post(F&& work) const {
    post_task(std::make_unique<detail::TaskOf<std::decay_t<F>>>(std::forward<F>(work)));
  }
  // Runs the work now when the caller is on this lane, else posts it.
  template <class F>
  void dispatch(F&& work) const {
    if (is_current()) {
      work();
    } else {
      post(std::forward<F>(work));
    }
  }
  bool is_current() const noexcept;
  // For Asio objects whose handlers are to run on this lane.
  const boost::asio::any_io_executor& executor() const noexcept;
  explicit operator bool() const noexcept { return state_ != nullptr; }
  friend bool operator==(const Lane&, const Lane&) = default;

 private:
  friend class Runtime;
  struct State;
  explicit Lane(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  void post_task(std::unique_ptr<detail::Task> task) const;
  std::shared_ptr<const State> state_;
};

// A pending timer or piece of work. cancel is idempotent and may come from any thread; dropping it
// does not cancel.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void cancel() noexcept = 0;
};

class Runtime {
 public:
  struct Options {
    Options() {}
    std::size_t io_threads = 2;
    std::size_t blocking_threads = 64;  // at most; work beyond it waits in a queue
    // Told of an exception that work on a lane let through. Absent: the program terminates.
    std::function<void(std::exception_ptr)> on_exception;
    // How long the destructor lets cancelled work come to its end.
    std::chrono::milliseconds shutdown_limit{5000};
  };

  explicit Runtime(Options options = Options());
  // Cancels what is tracked, lets posted work run to its end within the limit, joins the threads.
  // What is left or comes later on a lane is dropped. Not on a thread of this Runtime.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // For those that may outlive this object: the same Runtime, without being what ends it. Once it
  // has ended nothing that is asked of it takes place. [any]
  std::shared_ptr<Runtime> handle();
  bool ended() const noexcept;  // [any]

  Lane make_lane();
  boost::asio::any_io_executor io_executor();

  // done on the lane after the delay; Status::cancelled when cancelled before. A delay beyond 100
  // years counts as 100 years. [any]
  std::shared_ptr<Pending> timer(Lane lane, std::chrono::milliseconds delay, Handler<void> done);

  // work on a pool thread, then done on the lane. Work that has not begun when it is cancelled does
  // not run. An exception of the work arrives as Status::internal. [any]
  std::shared_ptr<Pending> post_blocking(Lane lane, std::function<void()> work, Handler<void> done);

  // The same on a few threads of their own, for core's calls to its store: work of plugins that
  // blocks holds up no stop, no destroy and no claim. [any]
  std::shared_ptr<Pending> post_store(Lane lane, std::function<void()> work, Handler<void> done);

  // Runs `work`, which waits for something that is none of this Runtime's threads. Where the caller
  // is one of them, a pool thread runs lanes in its place meanwhile: only the caller's own lane
  // waits. For calls that cannot be asynchronous. [any]
  void while_waiting(const std::function<void()>& work);

  // Something that would keep the threads busy for ever: it is cancelled by the destructor. What
  // has been released is forgotten. [any]
  void track(std::weak_ptr<Pending> pending);

 private:
  struct Impl;
  explicit Runtime(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
  bool owner_ = false;
};

}  // namespace sandforge
