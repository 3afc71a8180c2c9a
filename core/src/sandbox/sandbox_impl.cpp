#include "sandbox/sandbox_impl.hpp"

#include "sandbox/lane_handler.hpp"
#include "sandbox/validate.hpp"
#include "sandforge/clock.hpp"
#include "sandforge/posix/system.hpp"

namespace sandforge::sandbox {
namespace {

// Only an id of the caller's own says that the state of its machines is wanted again.
std::optional<std::string> own_checkpoint(const SandboxConfig& config) {
  if (config.checkpoint_name || !config.context->caller_chose_id) return config.checkpoint_name;
  return config.id;
}

Lifecycle::Plan life_plan(const std::shared_ptr<ProviderBackend>& provider,
                          const SandboxConfig& config, const std::shared_ptr<Captures>& captures) {
  Lifecycle::Plan plan;
  plan.id = config.id;
  plan.provider = provider;
  plan.context = config.context;
  plan.env = config.env;
  plan.left_env = config.left_env;
  plan.template_document = config.template_document;
  plan.start_timeout = config.start_timeout.value_or(std::chrono::milliseconds(0));
  plan.start_patience = config.start_patience;
  plan.cancel_grace = config.cancel_grace;
  plan.request.settings = config.settings;
  plan.request.working_directory = config.working_directory;
  plan.request.checkpoint_name = own_checkpoint(config);
  plan.request.seed_checkpoint_name = config.seed_checkpoint_name;
  plan.request.idle_timeout = config.idle_timeout;
  plan.settle = [captures](std::function<void()> next) { captures->settle(std::move(next)); };
  return plan;
}

}  // namespace

SandboxImpl::SandboxImpl(Runtime& runtime, std::shared_ptr<ProviderBackend> provider,
                         SandboxConfig config)
    : runtime_(runtime),
      provider_(std::move(provider)),
      config_(std::move(config)),
      lane_(runtime.make_lane()),
      created_at_ns_(system_clock()->now_ns()),
      request_prefix_(posix::random_hex(8) + "-"),
      deadlines_(std::make_shared<Deadlines>(runtime, lane_)),
      checkpoint_name_(own_checkpoint(config_)),
      captures_(std::make_shared<Captures>(
          lane_, deadlines_, Captures::Limits{config_.start_patience, config_.cancel_grace})),
      life_(lane_, life_plan(provider_, config_, captures_), config_.hooks, deadlines_,
            [this](std::uint64_t epoch) { table_.machine_ended(epoch); }),
      table_(lane_, deadlines_),
      overlay_(config_.overlay) {}

void SandboxImpl::touch() {
  last_used_ns_.store(system_clock()->now_ns(), std::memory_order_relaxed);
}

// ---- Life cycle

std::optional<ProviderSandboxId> SandboxImpl::sandbox_id() const {
  return life_.snapshot().sandbox_id;
}

std::optional<std::string> SandboxImpl::working_directory() const {
  return life_.snapshot().working_directory;
}

std::optional<StartedInfo> SandboxImpl::started() const {
  return life_.snapshot().started;
}

void SandboxImpl::async_start(Handler<StartedInfo> done) {
  post(lane_,
       [self = self(), done = std::move(done)]() mutable { self->life_.start(std::move(done)); });
}

void SandboxImpl::async_stop(Handler<void> done) {
  post(lane_,
       [self = self(), done = std::move(done)]() mutable { self->life_.stop(std::move(done)); });
}

void SandboxImpl::async_destroy(Handler<void> done) {
  post(lane_,
       [self = self(), done = std::move(done)]() mutable { self->life_.destroy(std::move(done)); });
}

void SandboxImpl::set_on_start(std::function<StartHook(StartHook)> updater) {
  const std::lock_guard one(updates_);
  life_.set_on_start_hook(updater(life_.on_start_hook()));
}

// ---- Environment

void SandboxImpl::set_env(std::function<EnvMap(EnvMap)> updater) {
  const std::lock_guard one(updates_);
  EnvMap updated = updater(env());
  if (auto bad = check_env(updated)) throw_error(*std::move(bad));
  const std::lock_guard lock(overlay_mutex_);
  overlay_ = std::move(updated);
}

EnvMap SandboxImpl::env() const {
  const std::lock_guard lock(overlay_mutex_);
  return overlay_;
}

// The call's own values stay, the overlay fills in what it does not name.
void SandboxImpl::merge_env(EnvMap& env) const {
  const std::lock_guard lock(overlay_mutex_);
  env.insert(overlay_.begin(), overlay_.end());
}

}  // namespace sandforge::sandbox
