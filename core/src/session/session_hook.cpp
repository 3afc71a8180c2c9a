#include "sandbox/lane_handler.hpp"
#include "session/session_impl.hpp"

namespace sandforge {
namespace {

// One start after the machine is there. Begins on the sandbox's lane, goes on on its own.
class HookRun : public std::enable_shared_from_this<HookRun> {
 public:
  HookRun(std::shared_ptr<SetupHookState> state, std::shared_ptr<Sandbox> sandbox, StartedInfo info,
          Lane lane, Handler<void> done)
      : state_(std::move(state)),
        sandbox_(std::move(sandbox)),
        info_(std::move(info)),
        lane_(std::move(lane)),
        done_(std::move(done)) {}

  void run() {
    const auto record = state_->core->record();
    if (record.plan.empty() || record.setup == SetupState::done) return run_host_hook();
    // A set-up that began and did not end: the markers tell how far it came.
    if (record.setup != SetupState::none) info_.setup_unfinished = true;
    auto self = shared_from_this();
    note(SetupState::running, SessionStatus::starting, [self](Result<SessionRecord> noted) {
      if (!noted) return self->finish(std::move(noted).error());
      self->set_up();
    });
  }

 private:
  void note(SetupState setup, SessionStatus status, Handler<SessionRecord> done) {
    state_->core->update(
        lane_,
        [setup, status](SessionRecord& record) {
          record.setup = setup;
          record.status = status;
        },
        std::move(done));
  }

  void set_up() {
    SetupRequest request;
    request.plan = state_->core->record().plan;
    request.access = state_->access;
    request.started = info_;
    request.options = state_->core->services().options.setup;
    sandbox::ask<SetupReport>(
        lane_, "the set-up",
        [self = shared_from_this()](const Result<SetupReport>& report) {
          self->set_up_done(report);
        },
        [&](Handler<SetupReport> done) {
          async_setup(sandbox_, std::move(request), std::move(done));
        });
  }

  void set_up_done(const Result<SetupReport>& report) {
    auto self = shared_from_this();
    if (!report) {
      return note(SetupState::failed, SessionStatus::error,
                  [self, error = report.error()](Result<SessionRecord> noted) {
                    if (!noted) self->state_->core->warn(noted.error());
                    self->finish(error);
                  });
    }
    {
      const std::lock_guard lock(state_->mutex);
      state_->report = *report;
    }
    note(SetupState::done, SessionStatus::running, [self](Result<SessionRecord> noted) {
      if (!noted) return self->finish(std::move(noted).error());
      self->run_host_hook();
    });
  }

  void run_host_hook() {
    if (!state_->on_start) return finish({});
    lane_.dispatch([self = shared_from_this()] { self->ask_host(); });
  }

  // On our lane, where its answer comes.
  void ask_host() {
    sandbox::ask<void>(
        lane_, "the start hook",
        [self = shared_from_this()](Result<void> result) { self->finish(std::move(result)); },
        [&](Handler<void> done) { state_->on_start(sandbox_, info_, std::move(done)); });
  }

  void finish(Result<void> result) { std::move(done_)(std::move(result)); }

  const std::shared_ptr<SetupHookState> state_;
  const std::shared_ptr<Sandbox> sandbox_;
  StartedInfo info_;
  const Lane lane_;
  Handler<void> done_;
};

}  // namespace

StartHook make_session_hook(std::shared_ptr<SetupHookState> state) {
  return [state = std::move(state)](std::shared_ptr<Sandbox> sandbox, StartedInfo info,
                                    Handler<void> done) {
    auto run =
        std::make_shared<HookRun>(state, std::move(sandbox), std::move(info),
                                  state->core->services().runtime.make_lane(), std::move(done));
    run->run();
  };
}

}  // namespace sandforge
