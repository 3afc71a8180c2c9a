#include "sandbox/lifecycle.hpp"

#include "sandbox/lane_handler.hpp"

namespace sandforge::sandbox {

Lifecycle::Lifecycle(Lane lane, Plan plan, Hooks hooks, std::shared_ptr<Deadlines> deadlines,
                     EndedFn ended)
    : lane_(std::move(lane)),
      plan_(std::move(plan)),
      deadlines_(std::move(deadlines)),
      ended_(std::move(ended)),
      hooks_(std::move(hooks)) {
  snapshot_.sandbox_id = plan_.context->sandbox_id;
  snapshot_.working_directory = plan_.request.working_directory;
}

// ---- Jobs

void Lifecycle::start(Handler<StartedInfo> done) {
  // While its hook runs a sandbox is running: the hook, too, may ask for a start.
  const bool settled = queue_.empty() && (!current_ || current_->in_hook);
  if (settled && status() == SandboxStatus::running) return std::move(done)(connected());
  join(Kind::start).started.push_back(std::move(done));
  pump();
}

void Lifecycle::stop(Handler<void> done) {
  join(Kind::stop).ended.push_back(std::move(done));
  hurry_start();
  pump();
}

void Lifecycle::destroy(Handler<void> done) {
  join(Kind::destroy).ended.push_back(std::move(done));
  hurry_start();
  pump();
}

Lifecycle::Job& Lifecycle::join(Kind kind) {
  if (last_kind() != kind) return queue_.emplace_back(kind);
  return queue_.empty() ? *current_ : queue_.back();
}

std::optional<Lifecycle::Kind> Lifecycle::last_kind() const {
  if (!queue_.empty()) return queue_.back().kind;
  if (current_) return current_->kind;
  return std::nullopt;
}

// A job that ends at once comes back to this loop, so a long queue needs no deep stack.
void Lifecycle::pump() {
  while (!busy_ && !queue_.empty()) {
    busy_ = true;
    current_.emplace(std::move(queue_.front()));
    queue_.pop_front();
    run();
  }
}

void Lifecycle::run() {
  const SandboxStatus now = status();
  switch (current_->kind) {
    case Kind::start:
      if (now == SandboxStatus::running) return finish_start(connected());
      return run_start();
    case Kind::stop:
      if (now == SandboxStatus::stopped || now == SandboxStatus::destroyed)
        return finish_teardown({});
      return run_teardown(SandboxStatus::stopping, hooks_.on_stop, true);
    case Kind::destroy:
      if (now == SandboxStatus::destroyed) return finish_teardown({});
      // Nothing started, so there is nothing that its hook could look after.
      return run_teardown(SandboxStatus::destroying, hooks_.on_destroy, !untouched_);
  }
}

void Lifecycle::finish_start(Result<StartedInfo> result) {
  const auto alive = keep();
  Job job = take_job();
  for (auto& done : job.started)
    std::move(done)(result);
  next_job();
}

void Lifecycle::finish_teardown(Result<void> result) {
  const auto alive = keep();
  Job job = take_job();
  for (auto& done : job.ended)
    std::move(done)(result);
  next_job();
}

Lifecycle::Job Lifecycle::take_job() {
  Job job = std::move(*current_);
  current_.reset();
  return job;
}

// Callers hear of a job before the next one begins.
void Lifecycle::next_job() {
  busy_ = false;
  if (!queue_.empty()) post(lane_, [this, alive = keep()] { pump(); });
}

// ---- Commands

std::optional<Machine> Lifecycle::machine() const {
  if (current_ && current_->in_hook && backend_) return Machine{backend_, epoch_, true};
  if (!current_ && backend_ && status() == SandboxStatus::running)
    return Machine{backend_, epoch_, false};
  return std::nullopt;
}

void Lifecycle::ensure_running(Handler<Machine> done) {
  if (auto ready = machine()) return std::move(done)(*std::move(ready));
  if (current_ && current_->in_hook)
    return std::move(done)(
        Error(Status::conflict, "Sandbox is not ready: " + plan_.id, "sandbox.not_ready"));
  const auto last = last_kind();
  if (last == Kind::destroy || (!last && status() == SandboxStatus::destroyed))
    return std::move(done)(Error(
        Status::gone, "Sandbox '" + plan_.id + "' was destroyed, start it to get a new machine",
        "sandbox.destroyed"));
  start([this, alive = keep(), done = std::move(done)](Result<StartedInfo> result) mutable {
    if (result) return ensure_running(std::move(done));
    Error error = std::move(result).error();
    error.may_have_started = false;  // the machine perhaps, the command never
    std::move(done)(std::move(error));
  });
}

void Lifecycle::lost(std::uint64_t epoch, bool gone) {
  // A start that is under way finds out for itself.
  const bool starting = current_ && current_->kind == Kind::start && !current_->in_hook;
  if (epoch != epoch_ || starting) return;
  if (gone) destroyed_until_ = epoch_;
  end_epoch();
  if (gone) forget_machine();
  const bool teardown = current_ && current_->kind != Kind::start;
  if (!teardown) set_status(gone ? SandboxStatus::pending : SandboxStatus::stopped);
}

bool Lifecycle::tearing_down() const {
  return current_ && current_->kind != Kind::start;
}

bool Lifecycle::destroyed(std::uint64_t epoch) const {
  return epoch <= destroyed_until_ ||
         (epoch == epoch_ && current_ && current_->kind == Kind::destroy);
}

// ---- The provider's object

void Lifecycle::with_backend(Handler<std::shared_ptr<SandboxBackend>> done) {
  if (backend_) return std::move(done)(backend_);
  backend_waiters_.push_back(std::move(done));
  if (backend_waiters_.size() > 1) return;

  CreateRequest request = plan_.request;
  request.lane = lane_;
  request.context = plan_.context;
  if (const auto id = snapshot().sandbox_id; id != plan_.context->sandbox_id) {
    auto context = std::make_shared<SessionContext>(*plan_.context);
    context->sandbox_id = id;
    request.context = std::move(context);
  }
  using Made = std::shared_ptr<SandboxBackend>;
  auto made = on_lane<Made>(lane_, "the provider", [this, alive = keep()](Result<Made> result) {
    if (result) backend_ = *result;
    for (auto& waiter : std::exchange(backend_waiters_, {}))
      std::move(waiter)(result);
  });
  post(plan_.provider->lane(), [provider = plan_.provider, request = std::move(request),
                                lane = lane_, made = std::move(made)]() mutable {
    auto result = provider->create(std::move(request));
    if (!result) return std::move(made)(std::move(result).error());
    // The object is dropped where it lives: on the lane, whoever lets go of it last.
    auto* raw = result->get();
    std::move(made)(Made(raw, [lane, kept = *std::move(result)](SandboxBackend*) mutable {
      post(lane, [kept = std::move(kept)] {});
    }));
  });
}

void Lifecycle::end_epoch() {
  const auto ended = epoch_++;
  ended_(ended);
}

// What comes next is another machine, and another object of the provider.
void Lifecycle::forget_machine() {
  backend_.reset();
  idempotency_key_.clear();
  setup_open_ = false;
  machine_known_ = false;
  untouched_ = true;
  const std::lock_guard lock(mutex_);
  snapshot_.sandbox_id.reset();
}

// ---- What others may look at

Snapshot Lifecycle::snapshot() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

SandboxStatus Lifecycle::status() const {
  const std::lock_guard lock(mutex_);
  return snapshot_.status;
}

void Lifecycle::set_status(SandboxStatus status, std::optional<std::string> error) {
  const std::lock_guard lock(mutex_);
  snapshot_.status = status;
  snapshot_.error = std::move(error);
}

StartHook Lifecycle::on_start_hook() const {
  const std::lock_guard lock(mutex_);
  return hooks_.on_start;
}

void Lifecycle::set_on_start_hook(StartHook hook) {
  const std::lock_guard lock(mutex_);
  hooks_.on_start = std::move(hook);
}

}  // namespace sandforge::sandbox
