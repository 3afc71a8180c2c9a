// How a command ends: by itself, by its caller, by its deadline, or given up.
#include <csignal>
#include "sandbox/attempt.hpp"
#include "sandbox/lane_handler.hpp"
#include "sandbox/process_impl.hpp"

namespace sandforge::sandbox {
namespace {

// What a provider has on top of the grace to report an end that was asked for.
constexpr std::chrono::milliseconds kReport{2000};

}  // namespace

void ProcessImpl::wait(WaitOptions options, Handler<CommandResult> done) {
  if (final_) {
    if (!final_->ok()) return std::move(done)(final_->error());
    return std::move(done)(with_output(final_->value()));
  }
  Waiter& waiter = waiters_.emplace_back();
  waiter.options = std::move(options);
  waiter.done = std::move(done);
  self_ = shared_from_this();
  watch_stop(waiter.options.stop, waiter.on_stop);
}

void ProcessImpl::kill(Handler<bool> done) {
  if (ended() || !process_) return std::move(done)(false);
  process_->signal(SIGKILL, true,
                   [self = shared_from_this(), done = std::move(done)](Result<void> r) mutable {
                     if (r) return std::move(done)(true);
                     const Status code = r.error().code;
                     if (code == Status::gone || code == Status::not_found)
                       return std::move(done)(false);
                     if (code != Status::unsupported) return std::move(done)(r.error());
                     const bool ended = self->ended();
                     if (!ended) self->process_->cancel();
                     std::move(done)(!ended);
                   });
  end_within(grace_bound());
}

void ProcessImpl::watch_stop(const std::stop_token& token, std::optional<StopCallback>& callback) {
  if (!token.stop_possible()) return;
  callback.emplace(token, [lane = lane_, weak = weak_from_this()] {
    post(lane, [weak] {
      if (const auto self = weak.lock()) self->cancel();
    });
  });
}

void ProcessImpl::cancel() {
  if (ended() || cancelled_) return;
  cancelled_ = true;
  if (!attempt_) return end_before_start(Status::cancelled);
  process_->cancel();
  end_within(grace_bound());
}

void ProcessImpl::machine_ended() {
  if (ended() || !attempt_) return;
  if (const auto host = host_.lock()) machine_destroyed_ = host->destroyed(machine_.epoch);
  end_within(kReport);
}

// ---- The watchdog: the provider may be remote, and lost

std::chrono::milliseconds ProcessImpl::grace_bound() const {
  return std::min(plan_.command.grace, std::chrono::milliseconds(std::chrono::hours(24))) + kReport;
}

void ProcessImpl::end_within(std::chrono::milliseconds delay) {
  const auto when = after(Clock::now(), delay);
  if (!watchdog_ || (*watchdog_)->first > when) set_watchdog(when);
}

void ProcessImpl::set_watchdog(Clock::time_point when) {
  drop_watchdog();
  watchdog_ = deadlines_->add(when, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->watchdog_.reset();
    self->give_up();
  });
}

void ProcessImpl::drop_watchdog() {
  if (watchdog_) deadlines_->remove(*watchdog_);
  watchdog_.reset();
}

void ProcessImpl::give_up() {
  if (!attempt_) return end_before_start(Status::timeout);
  process_->cancel();
  Status code = Status::transport_lost;
  if (cancelled_) {
    code = Status::cancelled;
  } else if (machine_destroyed_) {
    code = Status::gone;
  } else if (started_ && deadline_ && Clock::now() >= *deadline_) {
    code = Status::timeout;
  }
  Ending ending;
  ending.error = Error(code, "the provider did not report the end of the command", "command.lost");
  ending.error->may_have_started = true;
  ending.started = started_;
  conclude(std::move(ending));
}

// ---- The end

void ProcessImpl::conclude(Ending ending) {
  ending.exit = exit_;
  ending.cancelled = cancelled_;
  ending.over_limit = over_limit_;
  ending.machine_destroyed = machine_destroyed_;
  if (!machine_destroyed_ && ending.started) {
    const auto host = host_.lock();
    ending.machine_destroyed = host && host->destroyed(machine_.epoch);
  }
  if (ending.started)
    ending.time = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - sent_at_);
  finish(to_result(std::move(ending)));
}

void ProcessImpl::finish(Result<CommandResult> result) {
  const auto self = shared_from_this();
  self_.reset();
  if (attempt_) attempt_->close();
  attempt_.reset();
  process_.reset();
  machine_.backend.reset();
  drop_watchdog();
  on_stop_.reset();
  plan_.on_stdout = nullptr;
  plan_.on_stderr = nullptr;
  plan_.stop = {};
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
    if (result) exit_code_ = result->exit_code;
  }
  final_ = std::move(result);
  input_.fail(ended_error());
  if (const auto host = host_.lock()) host->process_ended(self);
  answer();
}

void ProcessImpl::answer() {
  if (spawned_) {
    Error error = final_->ok() ? final_->value().error.value_or(Error()) : final_->error();
    std::move(spawned_)(std::move(error));
  }
  for (Waiter& waiter : std::exchange(waiters_, {})) {
    waiter.on_stop.reset();
    if (!final_->ok()) {
      std::move(waiter.done)(final_->error());
      continue;
    }
    CommandResult result = with_output(final_->value());
    if (!result.error) result.error = std::move(waiter.callback_error);
    std::move(waiter.done)(std::move(result));
  }
}

CommandResult ProcessImpl::with_output(CommandResult result) const {
  result.command = text_;
  result.out = out();
  result.err = err();
  result.stdout_dropped_bytes = stdout_dropped_bytes();
  result.stderr_dropped_bytes = stderr_dropped_bytes();
  result.stdout_truncated = result.stdout_dropped_bytes != 0;
  result.stderr_truncated = result.stderr_dropped_bytes != 0;
  if (!result.error) result.error = callback_error_;
  return result;
}

}  // namespace sandforge::sandbox
