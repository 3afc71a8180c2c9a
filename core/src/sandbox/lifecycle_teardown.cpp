// Stopping and destroying: the hook, then the provider.
#include "sandbox/lane_handler.hpp"
#include "sandbox/lifecycle.hpp"

namespace sandforge::sandbox {

void Lifecycle::run_teardown(SandboxStatus status, const TeardownHook& hook, bool with_hook) {
  set_status(status);
  if (!hook || !with_hook) return send_teardown();
  const char* const name = current_->kind == Kind::stop ? "the onStop hook" : "the onDestroy hook";
  current_->in_hook = true;
  ask<void>(
      lane_, name,
      [this, alive = keep()](Result<void> result) {
        current_->in_hook = false;
        if (!result) return fail_teardown(std::move(result).error());
        send_teardown();
      },
      [&](Handler<void> done) { hook(keep(), std::move(done)); });
}

void Lifecycle::send_teardown() {
  plan_.settle([this, alive = keep()] { ask_teardown(); });
}

void Lifecycle::ask_teardown() {
  with_backend([this, alive = keep()](Result<std::shared_ptr<SandboxBackend>> backend) {
    if (!backend) return fail_teardown(std::move(backend).error());
    Handler<void> done = [this, alive = keep()](Result<void> r) {
      teardown_answered(std::move(r));
    };
    if (current_->kind == Kind::stop) return (*backend)->stop(std::move(done));
    (*backend)->destroy(std::move(done));
  });
}

void Lifecycle::teardown_answered(Result<void> result) {
  const bool gone =
      !result && (result.error().code == Status::gone || result.error().code == Status::not_found);
  if (!result && !gone) return fail_teardown(std::move(result).error());
  const bool destroy = current_->kind == Kind::destroy;
  if (destroy || gone) destroyed_until_ = epoch_;
  end_epoch();
  if (destroy || gone) forget_machine();
  set_status(destroy ? SandboxStatus::destroyed : SandboxStatus::stopped);
  finish_teardown({});
}

void Lifecycle::fail_teardown(Error error) {
  set_status(SandboxStatus::error, error.message);
  finish_teardown(std::move(error));
}

}  // namespace sandforge::sandbox
