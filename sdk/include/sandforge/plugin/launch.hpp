// The two styles of an author, seen from the layer: how a function of theirs is run so that the
// lane is never held, and how its end reaches the host.
#pragma once

#include "async.hpp"
#include "io.hpp"

namespace sandforge::plugin {

/*
 * Plain functions that may block. Each runs on a pool thread, so that several may run at the same
 * time for one sandbox; start, stop and destroy never overlap. They end early by watching the stop
 * token or by calls that take one.
 */
struct Blocking {
  template <class T>
  using Result = T;

  template <class T>
  static T ready(T value) {
    return value;
  }
  static void ready() {}

  // Runs fn() on a pool thread, then done(error, value) on the lane; value is null with an error.
  // Called on the lane. Throws when the host refuses the work: then neither runs.
  template <class T, class Fn, class Done>
  static void launch(const Lane& lane, const StopToken& stop, Fn fn, Done done) {
    using Job = BlockingJob<T, Fn, Done>;
    const auto& executor = detail::need(detail::services().executor, SF_SERVICE_EXECUTOR);
    auto job = std::make_unique<Job>(std::move(fn), std::move(done));
    detail::ErrorCatcher errors;
    errors.check(executor.post_blocking(detail::services().host, lane.get(), &Job::work, job.get(),
                                        {job.get(), &Job::finish}, &job->op, errors.sink()));
    Job* running = job.release();  // finish, which comes on this lane, deletes it
    running->cancel.emplace(stop, [op = running->op] {
      if (op != nullptr) op->vtbl->cancel(op);
    });
  }

 private:
  template <class T, class Fn, class Done>
  class BlockingJob {
   public:
    BlockingJob(Fn run, Done end) : fn_(std::move(run)), done_(std::move(end)) {}

    static void work(void* ctx) noexcept {
      auto& job = *static_cast<BlockingJob*>(ctx);
      try {
        if constexpr (std::is_void_v<T>) {
          job.fn_();
          job.value_.emplace();
        } else {
          job.value_.emplace(job.fn_());
        }
      } catch (...) {
        job.error_ = std::current_exception();
      }
    }
    static void finish(void* ctx, const sf_error* error) noexcept {
      const std::unique_ptr<BlockingJob> job(static_cast<BlockingJob*>(ctx));
      job->cancel.reset();
      if (job->op != nullptr) job->op->vtbl->release(job->op);
      try {
        // Work that had not begun when it was cancelled left neither a value nor an error.
        if (error != nullptr && !job->value_ && !job->error_) {
          job->error_ = std::make_exception_ptr(Error::from(*error));
        }
        job->done_(job->error_, job->error_ ? nullptr : &*job->value_);
      } catch (...) {
        detail::report_stray(std::current_exception(), "the end of an operation");
      }
    }

    sf_op* op = nullptr;
    std::optional<StopCallback> cancel;

   private:
    Fn fn_;
    Done done_;
    std::optional<detail::Boxed<T>> value_;
    std::exception_ptr error_;
  };
};

namespace detail {

// Calls tell(error) with the error, or tell(nullptr) inside which the value is converted: what the
// conversion throws is told instead, as long as nothing was told before.
template <class Tell>
void settle(const std::exception_ptr& error, Tell tell) noexcept {
  std::exception_ptr problem = error;
  if (!problem) {
    try {
      tell(nullptr);
      return;
    } catch (...) {
      problem = std::current_exception();
    }
  }
  with_error(problem, [&](const sf_error& e) { tell(&e); });
}

/*
 * One asynchronous call of the host: fn(stop) gives the result in the author's style, tell(error,
 * value) hands it to the host's completion. The handle is written once the work was accepted. Like
 * the others below it throws what refuses the call, and is called inside a fence.
 */
template <class Style, class T, class Fn, class Tell>
void operate(const Lane& lane, sf_op** op, Fn fn, Tell tell) {
  const std::shared_ptr<Operation> operation = Operation::create();
  Style::template launch<T>(
      lane, operation->token(),
      [fn = std::move(fn), stop = operation->token()]() mutable { return fn(stop); },
      [tell = std::move(tell)](const std::exception_ptr& error, Boxed<T>* value) mutable {
        settle(error, [&](const sf_error* e) { tell(e, e == nullptr ? value : nullptr); });
      });
  Operation::give(operation, op);
}

// A call that ends in a plain completion.
template <class Style, class Fn>
void operate_void(const Lane& lane, sf_completion done, sf_op** op, Fn fn) {
  operate<Style, void>(lane, op, std::move(fn),
                       [done](const sf_error* e, Void*) { done.done(done.ctx, e); });
}

// A stream that an author's function fills or empties: fn(Io&) runs in the author's style.
template <class Style, class Fn>
void open_stream(const Lane& lane, std::uint64_t window, const sf_stream_events* events,
                 sf_stream** out, Fn fn) {
  auto* channel = new Channel(lane, *events, nullptr, window);
  try {
    lane.post([channel, fn = std::move(fn)]() mutable {
      auto io = std::make_shared<Io>(channel);
      try {
        Style::template launch<void>(
            channel->lane(), io->stop(), [io, fn = std::move(fn)]() mutable { return fn(*io); },
            [io](const std::exception_ptr& error, Void*) {
              if (error) return io->fail(error);
              io->finish();
            });
      } catch (...) {
        io->fail(std::current_exception());
      }
    });
  } catch (...) {
    channel->abandon();
    throw;
  }
  *out = channel->stream();
}

}  // namespace detail
}  // namespace sandforge::plugin
