/*
 * The coroutine style of an author: CoFactorySandbox and CoSandbox, whose functions are Tasks over
 * the services of the host. A call that waits holds no thread.
 *
 *   class MySandbox : public CoSandbox {
 *     Task<Started> start(Starting& starting) override;
 *     Task<Exit> run(Command command, ProcessIo io) override {
 *       co_await sleep_for(std::chrono::seconds(1));
 *       co_await write_all(io, "hello\n", SF_CHANNEL_STDOUT);
 *       co_return Exit::exited(0);
 *     }
 *     …
 *
 * What may be awaited: a Task; what returns an Async (Host, Context, HostProcess::signal); the
 * functions below and those of host_stream.hpp and task_group.hpp. The rules are at Task
 * (task.hpp).
 *
 * g++ 12 miscompiles some shapes, which tests/lint refuses in this tree. In yours: give each class
 * that is passed to a coroutine a constructor of its own; bind what co_await answers to a named
 * local before if, while, ?: or another call; inside a co_await expression no braced list, no ?:
 * and no lambda that captures by value, but a name for it; no co_await in a handler.
 */
#pragma once

#include <coroutine>

#include "factory.hpp"
#include "host_stream.hpp"
#include "task_group.hpp"

namespace sandforge::plugin {

/*
 * Functions that are coroutines, on the lane of their object. Each call begins in a task of its own
 * on the lane, and its frame is gone before the host hears of its end. Calls of one object run side
 * by side, one while the others wait; start, stop and destroy never overlap.
 */
struct Coroutine {
  template <class T>
  using Result = Task<T>;

  template <class T>
  static Task<T> ready(T value) {
    co_return value;
  }
  static Task<void> ready() { co_return; }

  // Runs the task that fn() makes, on the lane, then done(error, value), there too; value is null
  // with an error. Called on the lane.
  template <class T, class Fn, class Done>
  static void launch(const Lane& lane, const StopToken& stop, Fn fn, Done done) {
    using Running = Job<T, Fn, Done>;
    auto job = std::make_unique<Running>(lane, stop, std::move(fn), std::move(done));
    lane.get()->vtbl->post(lane.get(), &Running::begin, job.release());
  }

 private:
  template <class T, class Fn, class Done>
  class Job final : public detail::Runner {
   public:
    Job(const Lane& lane, StopToken stop, Fn fn, Done done)
        : Runner(lane), stop_(std::move(stop)), fn_(std::move(fn)), done_(std::move(done)) {}

    static void begin(void* ctx) noexcept {
      auto& job = *static_cast<Job*>(ctx);
      std::coroutine_handle<> first;
      try {
        job.stop_.throw_if_stopped();
        job.task_.emplace(job.fn_());
        job.task_->handle().promise().prepare(job, job.stop_, nullptr);
        first = job.task_->handle();
      } catch (...) {
        return job.settle(std::current_exception());
      }
      job.run(first);
    }

   private:
    void finished() noexcept override { settle(nullptr); }

    void settle(std::exception_ptr error) noexcept {
      const std::unique_ptr<Job> self(this);
      std::optional<detail::Boxed<T>> value;
      try {
        if (!error) take(value);
      } catch (...) {
        error = std::current_exception();
      }
      task_.reset();
      try {
        done_(error, error ? nullptr : &*value);
      } catch (...) {
        detail::report_stray(std::current_exception(), "the end of an operation");
      }
    }
    void take(std::optional<detail::Boxed<T>>& value) {
      if constexpr (std::is_void_v<T>) {
        task_->handle().promise().result();
        value.emplace();
      } else {
        value.emplace(task_->handle().promise().result());
      }
    }

    const StopToken stop_;
    Fn fn_;
    Done done_;
    std::optional<Task<T>> task_;
  };
};

using CoSandbox = BasicSandbox<Coroutine>;
using CoFactorySandbox = BasicFactorySandbox<Coroutine>;

// Ends after the time, by a timer of the host.
inline Task<void> sleep_for(std::chrono::milliseconds time) {
  const Lane lane = co_await current_lane();
  co_await Host().sleep(lane, time);
}

namespace detail {

// Work on a pool thread. One reference is the host's, from the begin to its completion.
template <class T, class Fn>
class PoolWork {
 public:
  explicit PoolWork(Fn fn) : fn_(std::move(fn)) {}

  static sf_status begin(const std::shared_ptr<PoolWork>& work, const Lane& lane,
                         Pending<T>* pending, sf_op** op, const sf_error_sink* err) {
    const auto& executor = need(services().executor, SF_SERVICE_EXECUTOR);
    work->pending_ = pending;
    work->host_ = work;
    const sf_status status =
        executor.post_blocking(services().host, lane.get(), &PoolWork::run, work.get(),
                               {work.get(), &PoolWork::end}, op, err);
    if (status != SF_OK) work->host_.reset();
    return status;
  }

 private:
  static void run(void* ctx) noexcept {
    auto& work = *static_cast<PoolWork*>(ctx);
    try {
      if constexpr (std::is_void_v<T>) {
        work.fn_();
        work.value_.emplace();
      } else {
        work.value_.emplace(work.fn_());
      }
    } catch (...) {
      work.error_ = std::current_exception();
    }
  }
  static void end(void* ctx, const sf_error* error) noexcept {
    const std::shared_ptr<PoolWork> work = std::move(static_cast<PoolWork*>(ctx)->host_);
    if (work->error_) return work->pending_->fail(std::move(work->error_));
    if (work->value_) return work->pending_->succeed(std::move(*work->value_));
    if (error != nullptr) return work->pending_->fail(*error);
    work->pending_->fail(
        std::make_exception_ptr(Error(Code::internal, "the host dropped blocking work")));
  }

  Fn fn_;
  Pending<T>* pending_ = nullptr;
  std::shared_ptr<PoolWork> host_;
  std::optional<Boxed<T>> value_;
  std::exception_ptr error_;
};

}  // namespace detail

/*
 * Runs fn() on a pool thread of the host and answers what it returns or throws. A stop while it is
 * queued ends it with Code::cancelled; once it runs it is not interrupted: give it current_stop().
 * fn must not touch what the lane protects.
 *
 *   const auto work = [path] { return read_file(path); };
 *   const std::string text = co_await run_blocking(work);
 */
template <class Fn, class T = std::invoke_result_t<Fn&>>
Task<T> run_blocking(Fn fn) {
  const Lane lane = co_await current_lane();
  auto work = std::make_shared<detail::PoolWork<T, Fn>>(std::move(fn));
  Async<T> operation(lane, [work, lane](auto* pending, sf_op** op, const sf_error_sink* err) {
    return work->begin(work, lane, pending, op, err);
  });
  co_return co_await std::move(operation);
}

namespace detail {

// Waits for what arm(fn) tells by calling fn on the lane, or for a stop.
template <class Arm>
Task<void> wait_or_stop(Arm arm) {
  const StopToken stop = co_await current_stop();
  const auto wake = std::make_shared<Wake>();
  const StopCallback stopped(stop, [wake] { wake->set(); });
  arm([wake] { wake->set_here(); });
  co_await wake;
}

}  // namespace detail

/*
 * Gives all of data to the host, waiting for credit: while the host takes none, the coroutine does
 * not go on. Throws when a stop was requested, of the stream or of the coroutine; what the host
 * will not take any more is dropped and counted. Several coroutines may write to one stream; their
 * pieces may then alternate.
 */
inline Task<void> write_all(Io io, std::string data, std::uint32_t channel = SF_CHANNEL_DATA,
                            std::uint32_t flags = 0) {
  const StopToken stop = co_await current_stop();
  std::size_t taken = 0;
  for (;;) {
    taken += io.try_write(std::string_view(data).substr(taken), channel, flags);
    throw_if_stopped(io.stop_reason());
    if (taken == data.size()) co_return;
    stop.throw_if_stopped();
    const auto credit = [io](auto fn) { io.when_credit(std::move(fn)); };
    co_await detail::wait_or_stop(credit);
  }
}

/*
 * The next piece of input from the host; absent at its end. Throws when a stop was requested, and
 * when the host drops a stream that is no process without ending its input.
 */
inline Task<std::optional<Piece>> read_some(Io io) {
  const StopToken stop = co_await current_stop();
  for (;;) {
    std::optional<Piece> piece = io.try_read();
    if (piece) co_return piece;
    throw_if_stopped(io.stop_reason());
    if (io.input_at_end()) co_return std::nullopt;
    stop.throw_if_stopped();
    const auto input = [io](auto fn) { io.when_input(std::move(fn)); };
    co_await detail::wait_or_stop(input);
  }
}

}  // namespace sandforge::plugin
