// Starting: environment, template, the provider's start, the hook.
#include "sandbox/features.hpp"
#include "sandbox/lane_handler.hpp"
#include "sandbox/lifecycle.hpp"
#include "sandbox/validate.hpp"
#include "sandforge/posix/system.hpp"

namespace sandforge::sandbox {

void Lifecycle::run_start() {
  set_status(SandboxStatus::starting);
  warnings_.clear();
  untouched_ = false;
  id_before_ = snapshot().sandbox_id;
  start_cancelled_ = start_overdue_ = false;
  const auto serial = ++serial_;
  limit_start();
  with_backend([this, alive = keep(), serial](Result<std::shared_ptr<SandboxBackend>> backend) {
    if (serial != serial_) return;
    if (!backend) return fail_start(std::move(backend).error());
    check_idle_timeout([this, alive, serial, backend = *backend](const Result<void>& kept) {
      if (serial != serial_) return;
      if (!kept) return fail_start(kept.error());
      auto request = start_request();
      if (!request) return fail_start(std::move(request).error());
      resolve_template(backend, *std::move(request));
    });
  });
}

// A provider that would let the machine run on must not be given one.
void Lifecycle::check_idle_timeout(std::function<void(const Result<void>&)> next) {
  if (plan_.request.idle_timeout.value_or(std::chrono::milliseconds(0)).count() == 0)
    return next(Result<void>());
  auto known = on_lane<Features>(lane_, "the provider",
                                 [alive = keep(), name = plan_.provider->name(),
                                  next = std::move(next)](const Result<Features>& features) {
                                   if (!features) return next(features.error());
                                   auto bad = check_feature(kIdleTimeout, "an idle timeout", name,
                                                            *features);
                                   next(bad ? Result<void>(*std::move(bad)) : Result<void>());
                                 });
  post(plan_.provider->lane(), [provider = plan_.provider, known = std::move(known)]() mutable {
    provider->features(std::move(known));
  });
}

Result<StartRequest> Lifecycle::start_request() {
  StartRequest request;
  std::optional<EnvMap> env;
  if (plan_.context->env) {
    const auto called =
        contained("the environment function", [&] { env = plan_.context->env(*plan_.context); });
    if (!called) return called.error();
  }
  if (!env) env = plan_.env;
  if (env) {
    if (auto bad = check_env(*env)) return *std::move(bad);
    request.env_given = true;
    request.env = *std::move(env);
  }
  for (const auto& [name, value] : plan_.left_env)
    request.env[name] = value;
  // One key for all tries: what an interrupted one made is adopted, not made again.
  if (idempotency_key_.empty()) idempotency_key_ = posix::random_hex(16);
  request.idempotency_key = idempotency_key_;
  request.timeout = plan_.start_timeout;
  request.start_from = start_from_;
  return request;
}

// A machine that is known is reattached, and needs no template. Without one, a start still works.
void Lifecycle::resolve_template(std::shared_ptr<SandboxBackend> backend, StartRequest request) {
  if (!plan_.template_document || snapshot().sandbox_id)
    return send_start(backend, std::move(request));
  using Document = std::optional<std::string>;
  ask<Document>(
      lane_, "the template",
      [this, alive = keep(), serial = serial_, backend = std::move(backend),
       request = std::move(request)](Result<Document> document) mutable {
        if (serial != serial_) return;
        if (document) {
          request.template_document = *std::move(document);
        } else {
          warnings_.push_back("starting without the template: " + document.error().message);
        }
        send_start(backend, std::move(request));
      },
      [&](Handler<Document> done) { plan_.template_document(std::move(done)); });
}

void Lifecycle::send_start(const std::shared_ptr<SandboxBackend>& backend, StartRequest request) {
  setup_was_open_ = setup_open_;
  const auto serial = serial_;
  starting_ = backend->start(
      std::move(request),
      [this, alive = keep(), serial](const ProviderSandboxId& id) { identified(serial, id); },
      [this, alive = keep(), serial, backend](Result<StartResult> result) {
        if (serial != serial_) return answered_too_late(*backend, result);
        starting_.reset();
        start_answered(std::move(result));
      });
  if (start_cancelled_ && starting_) starting_->cancel();
}

void Lifecycle::limit_start() {
  if (plan_.start_timeout.count() == 0) return;
  deadlines_->add(after(Clock::now(), plan_.start_timeout),
                  [this, weak = owner_, serial = serial_] {
                    const auto alive = weak.lock();
                    if (!alive || serial != serial_) return;
                    start_overdue_ = true;
                    cancel_start();
                  });
}

// A stop or a destroy waits for the start that runs.
void Lifecycle::hurry_start() {
  if (!current_ || current_->kind != Kind::start || current_->in_hook) return;
  deadlines_->add(after(Clock::now(), plan_.start_patience),
                  [this, weak = owner_, serial = serial_] {
                    const auto alive = weak.lock();
                    if (alive && serial == serial_) cancel_start();
                  });
}

// The start that runs takes too long, for itself or for what waits.
void Lifecycle::cancel_start() {
  const bool starting = current_ && current_->kind == Kind::start && !current_->in_hook;
  if (!starting || std::exchange(start_cancelled_, true)) return;
  if (starting_) starting_->cancel();
  deadlines_->add(after(Clock::now(), plan_.cancel_grace), [this, weak = owner_, serial = serial_] {
    if (const auto alive = weak.lock()) give_start_up(serial);
  });
}

void Lifecycle::give_start_up(std::uint64_t serial) {
  if (serial != serial_ || !current_ || current_->kind != Kind::start || current_->in_hook) return;
  ++serial_;
  starting_.reset();
  backend_.reset();  // its start is still under way: what comes next gets an object of its own
  fail_start(
      Error(Status::timeout,
            "Sandbox '" + plan_.id + "' was being started, and the provider did not end that",
            "sandbox.start_stuck"));
}

// The start was given up for a stop or a destroy, and made its machine all the same. A start that
// was wanted since finds it by its key.
void Lifecycle::answered_too_late(SandboxBackend& backend, const Result<StartResult>& result) {
  const auto last = last_kind();
  if (!result || last == Kind::start) return;
  const auto done = [](const Result<void>&) {};  // nobody is left to tell
  if (last == Kind::destroy || (!last && status() == SandboxStatus::destroyed)) {
    backend.destroy(done);
  } else if (last == Kind::stop || status() == SandboxStatus::stopped) {
    backend.stop(done);
  }
}

// The machine exists: from here on it must not be lost, whatever becomes of this start.
void Lifecycle::identified(std::uint64_t serial, const ProviderSandboxId& id) {
  const bool late = serial != serial_ || !current_ || current_->in_hook;
  if (late || id.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    snapshot_.sandbox_id = id;
  }
  if (!hooks_.on_identity) return;
  const auto told = contained("the onIdentity hook", [&] { hooks_.on_identity(id); });
  if (!told) warnings_.push_back(told.error().message);
}

void Lifecycle::start_answered(Result<StartResult> result) {
  if (!result && start_overdue_ && result.error().code == Status::cancelled)
    return fail_start(Error(Status::timeout, "Sandbox '" + plan_.id + "' took too long to start",
                            "sandbox.start_timeout"));
  if (!result) return fail_start(std::move(result).error());
  StartResult& answer = *result;
  const auto known = snapshot().sandbox_id;
  if (answer.sandbox_id && answer.sandbox_id != known) identified(serial_, *answer.sandbox_id);

  const bool other_id = answer.sandbox_id && id_before_ && answer.sandbox_id != id_before_;
  if (answer.outcome == StartOutcome::created || !machine_known_ || other_id) ++generation_;
  machine_known_ = true;
  ++epoch_;
  idempotency_key_.clear();
  if (answer.outcome != StartOutcome::connected) start_from_.reset();

  StartedInfo info;
  info.outcome = answer.outcome;
  info.provenance = answer.provenance;
  info.generation = generation_;
  info.setup_unfinished = setup_was_open_ && answer.outcome != StartOutcome::created;
  info.template_pending = std::move(answer.template_pending);
  info.template_retry_after = answer.template_retry_after;
  info.env_names = std::move(answer.env_names);
  info.warnings = std::move(answer.warnings);
  info.warnings.insert(info.warnings.end(), std::make_move_iterator(warnings_.begin()),
                       std::make_move_iterator(warnings_.end()));
  setup_open_ = info.setup_unfinished || answer.outcome == StartOutcome::created;
  {
    const std::lock_guard lock(mutex_);
    if (answer.working_directory) snapshot_.working_directory = std::move(answer.working_directory);
    snapshot_.status = SandboxStatus::running;
    snapshot_.error.reset();
    snapshot_.started = info;
  }
  run_start_hook(std::move(info));
}

void Lifecycle::run_start_hook(StartedInfo info) {
  const StartHook hook = on_start_hook();
  if (!hook) return run_after_start(std::move(info), {});
  current_->in_hook = true;
  ask<void>(
      lane_, "the onStart hook",
      [this, alive = keep(), info](const Result<void>& result) { run_after_start(info, result); },
      [&](Handler<void> done) { hook(keep(), info, std::move(done)); });
}

void Lifecycle::run_after_start(StartedInfo info, const Result<void>& result) {
  if (!hooks_.after_start) return start_hook_done(std::move(info), result);
  current_->in_hook = true;
  ask<void>(
      lane_, "the afterStart hook",
      [this, alive = keep(), info, result](const Result<void>& after) {
        start_hook_done(info, result ? after : result);
      },
      [&](Handler<void> done) { hooks_.after_start(std::move(done)); });
}

void Lifecycle::start_hook_done(StartedInfo info, const Result<void>& result) {
  current_->in_hook = false;
  const bool lost = status() != SandboxStatus::running;  // by a command of the hook
  if (result && !lost) {
    setup_open_ = false;
    return finish_start(std::move(info));
  }
  if (result)
    return finish_start(Error(Status::gone,
                              "Sandbox '" + plan_.id + "' lost its machine while it started",
                              "sandbox.lost"));
  const Error& cause = result.error();
  Error error = cause;
  error.message = "Sandbox '" + plan_.id + "' onStart hook failed: " + cause.message;
  error.reason = "hook.on_start";
  error.details.set("cause", to_json(cause));
  if (lost) return finish_start(std::move(error));
  fail_start(std::move(error));
}

void Lifecycle::fail_start(Error error) {
  // The machine that an interrupted start made has not seen a hook.
  if (current_ && snapshot().sandbox_id != id_before_) setup_open_ = true;
  if (error.code == Status::gone && error.reason != "hook.on_start") {
    forget_machine();
    set_status(SandboxStatus::pending);
  } else {
    set_status(SandboxStatus::error, error.message);
  }
  finish_start(std::move(error));
}

StartedInfo Lifecycle::connected() const {
  StartedInfo info = snapshot().started.value_or(StartedInfo());
  info.outcome = StartOutcome::connected;
  info.provenance = Provenance::none;
  info.warnings.clear();
  return info;
}

}  // namespace sandforge::sandbox
