// Threads, lanes, timers and blocking work: what everything asynchronous in core runs on.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "sandforge/handler.hpp"

namespace sandforge {

class Logger;
class Clock;

// A serial queue. Copies are the same queue. Work runs on the Runtime's threads, one piece at a
// time, in order, never inside post.
class Lane {
 public:
  Lane() = default;
  explicit Lane(boost::asio::any_io_executor strand);

  void post(std::function<void()> work) const;  // [any]
  // Runs the work now when the caller is on this lane, else posts it.
  void dispatch(std::function<void()> work) const;
  bool is_current() const;
  const boost::asio::any_io_executor& executor() const noexcept { return executor_; }
  explicit operator bool() const noexcept { return static_cast<bool>(executor_); }

 private:
  boost::asio::any_io_executor executor_;
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
    std::size_t io_threads = 2;
    std::size_t blocking_threads = 64;  // at most; work beyond it waits in a queue
  };

  Runtime();
  explicit Runtime(Options options);
  ~Runtime();  // waits for what runs on its threads; pending timers are cancelled
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Lane make_lane();
  boost::asio::any_io_executor io_executor();

  // done on the lane after the delay; Status::cancelled when cancelled before. [any]
  std::shared_ptr<Pending> timer(Lane lane, std::chrono::milliseconds delay, Handler<void> done);

  // work on a pool thread, then done on the lane. Work that has not begun when it is cancelled does
  // not run. An exception of the work arrives as Status::internal. [any]
  std::shared_ptr<Pending> post_blocking(Lane lane, std::function<void()> work, Handler<void> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sandforge
