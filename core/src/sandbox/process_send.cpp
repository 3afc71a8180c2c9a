// From a command to a running process. A command is sent again only when it provably never started.
#include "sandbox/attempt.hpp"
#include "sandbox/features.hpp"
#include "sandbox/process_impl.hpp"

namespace sandforge::sandbox {
namespace {

constexpr int kSends = 3;  // of one command over connections that break before delivery

}  // namespace

void ProcessImpl::execute(const std::shared_ptr<CommandHost>& host, Handler<CommandResult> done) {
  waiters_.emplace_back().done = std::move(done);
  self_ = shared_from_this();
  launch(host);
}

void ProcessImpl::spawn(const std::shared_ptr<CommandHost>& host,
                        Handler<std::shared_ptr<Process>> done) {
  spawned_ = std::move(done);
  self_ = shared_from_this();
  launch(host);
}

void ProcessImpl::launch(const std::shared_ptr<CommandHost>& host) {
  host_ = host;
  if (plan_.stop.stop_requested()) return end_before_start(Status::cancelled);
  watch_stop(plan_.stop, on_stop_);
  if (plan_.command.timeout.count() > 0) deadline_ = after(plan_.called, plan_.command.timeout);
  if (!needs_features(plan_.command)) return try_start(host);
  if (deadline_) set_watchdog(*deadline_);
  host->features([self = shared_from_this(), host](Result<Features> features) {
    if (self->ended()) return;
    if (!features) return self->finish(std::move(features).error());
    self->fit(host, *features);
  });
}

// What the provider does not offer is refused before anything starts.
void ProcessImpl::fit(const std::shared_ptr<CommandHost>& host, const Features& features) {
  if (plan_.stdin_if_offered && !has_feature(features, feature::kStdin))
    plan_.command.stdin_pipe = false;
  if (auto bad = check_features(plan_.command, host->provider(), features))
    return finish(*std::move(bad));
  try_start(host);
}

void ProcessImpl::try_start(const std::shared_ptr<CommandHost>& host) {
  if (const auto machine = host->machine()) return send(host, *machine);
  if (deadline_) set_watchdog(*deadline_);
  host->ensure_running([self = shared_from_this(), host](Result<Machine> machine) {
    if (self->ended()) return;
    if (!machine) return self->finish(std::move(machine).error());
    self->send(host, *machine);
  });
}

void ProcessImpl::send(const std::shared_ptr<CommandHost>& host, const Machine& machine) {
  sent_at_ = Clock::now();
  if (deadline_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - sent_at_);
    if (left.count() <= 0) return end_before_start(Status::timeout);
    plan_.command.timeout = left;
  }
  ++sends_;
  machine_ = machine;
  attempt_ = std::make_shared<Attempt>(weak_from_this());
  auto process = machine_.backend->spawn(plan_.command, attempt_);
  if (!process) return not_started(std::move(process).error());
  process_ = *std::move(process);
  if (deadline_) set_watchdog(*deadline_ + grace_bound());
  host->process_sent(shared_from_this());
}

Result<void> ProcessImpl::attach(const std::shared_ptr<CommandHost>& host, const Machine& machine,
                                 const ProcessInfo& info, OutputCursor from) {
  host_ = host;
  machine_ = machine;
  sent_at_ = Clock::now();
  attempt_ = std::make_shared<Attempt>(weak_from_this());
  auto process =
      machine.backend->processes()->attach(info.id, from, plan_.command.window, attempt_);
  if (!process) return std::move(process).error();
  process_ = *std::move(process);
  host->process_sent(shared_from_this());
  on_started(info.id, info.pid);
  return {};
}

void ProcessImpl::not_started(Error error) {
  attempt_->close();
  attempt_.reset();
  process_.reset();
  drop_watchdog();
  may_have_started_ = may_have_started_ || error.may_have_started;
  if (may_have_started_) {
    error.may_have_started = true;
    Ending ending;
    ending.started = false;
    ending.error = std::move(error);
    return conclude(std::move(ending));
  }
  if (cancelled_) return end_before_start(Status::cancelled);
  if (error.code == Status::timeout) return end_before_start(Status::timeout);
  if (!send_again(error)) finish(std::move(error));
}

bool ProcessImpl::send_again(const Error& error) {
  const auto host = host_.lock();
  if (!host) return false;
  switch (error.code) {
    case Status::gone:
      // The caller must hear that its machine is gone; the next call gets another one.
      host->machine_lost(machine_.epoch, true);
      return false;
    case Status::conflict:
      host->machine_lost(machine_.epoch, false);
      if (machine_.in_hook || restarted_) return false;
      restarted_ = true;
      try_start(host);
      return true;
    case Status::transport_lost:
      if (sends_ >= kSends) return false;
      try_start(host);
      return true;
    default:
      return false;
  }
}

// Nothing ran, and that is what the caller wanted.
void ProcessImpl::end_before_start(Status code) {
  Ending ending;
  ending.started = false;
  ending.error =
      code == Status::cancelled
          ? Error(code, "Sandbox operation aborted: command", "command.aborted")
          : Error(code, "the command did not start within its time limit", "command.no_start");
  conclude(std::move(ending));
}

void ProcessImpl::mark_started() {
  if (started_) return;
  started_ = may_have_started_ = true;
  {
    const std::lock_guard lock(mutex_);
    running_ = true;
    if (id_.empty()) id_ = ProcessId(plan_.command.request_id);
  }
  const auto self = shared_from_this();
  if (const auto host = host_.lock()) host->process_started(self);
  if (!spawned_) return;
  std::move(spawned_)(std::shared_ptr<Process>(self));
  if (waiters_.empty()) self_.reset();
}

}  // namespace sandforge::sandbox
