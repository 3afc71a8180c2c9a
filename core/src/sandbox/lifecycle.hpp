// The life cycle of one sandbox: start, stop and destroy as jobs that run one after the other.
//
// A job joins the last one when that is of the same kind, else it waits for it: so calls take
// effect in their order, and calls at once share a result. Jobs that find their work done succeed
// without asking the provider. Hooks are part of their job.
//
// Everything on the lane, but for the snapshot.
#pragma once

#include <deque>
#include <mutex>

#include "sandbox/deadlines.hpp"
#include "sandbox/machine.hpp"
#include "sandforge/sandbox.hpp"

namespace sandforge::sandbox {

// What other threads may look at.
struct Snapshot {
  SandboxStatus status = SandboxStatus::pending;
  std::optional<ProviderSandboxId> sandbox_id;
  std::optional<std::string> working_directory;
  std::optional<StartedInfo> started;
  std::optional<std::string> error;
};

class Lifecycle {
 public:
  // What a sandbox is made of; never changes.
  struct Plan {
    std::string id;
    std::shared_ptr<ProviderBackend> provider;
    std::shared_ptr<const SessionContext> context;
    CreateRequest request;  // without context and lane
    std::optional<EnvMap> env;
    EnvMap left_env;
    TemplateFn template_document;
    std::chrono::milliseconds start_timeout{0};  // 0: none
    std::chrono::milliseconds start_patience{0};
    std::chrono::milliseconds cancel_grace{0};
    // Before the provider stops or destroys: goes on by calling what it is given.
    std::function<void(std::function<void()>)> settle;
  };
  // epoch: that stretch of running has ended, or its machine is gone.
  using EndedFn = std::function<void(std::uint64_t epoch)>;

  Lifecycle(Lane lane, Plan plan, Hooks hooks, std::shared_ptr<Deadlines> deadlines, EndedFn ended);
  // The sandbox that hooks get, and that lives as long as a job runs. Before anything else.
  void set_owner(std::weak_ptr<Sandbox> owner) { owner_ = std::move(owner); }

  void start(Handler<StartedInfo> done);
  void stop(Handler<void> done);
  void destroy(Handler<void> done);

  std::optional<Machine> machine() const;
  void ensure_running(Handler<Machine> done);
  void lost(std::uint64_t epoch, bool gone);
  bool destroyed(std::uint64_t epoch) const;
  // stop or destroy is under way.
  bool tearing_down() const;

  // The checkpoint of the next fresh start.
  void start_from(std::string name) { start_from_ = std::move(name); }

  // The provider's object; made when it is first needed.
  void with_backend(Handler<std::shared_ptr<SandboxBackend>> done);

  Snapshot snapshot() const;               // [any]
  SandboxStatus status() const;            // [any]
  StartHook on_start_hook() const;         // [any]
  void set_on_start_hook(StartHook hook);  // [any]

 private:
  enum class Kind : std::uint8_t { start, stop, destroy };
  struct Job {
    explicit Job(Kind k) : kind(k) {}
    Kind kind;
    bool in_hook = false;
    std::vector<Handler<StartedInfo>> started;
    std::vector<Handler<void>> ended;
  };

  Job& join(Kind kind);
  void pump();
  void run();
  Job take_job();
  void next_job();
  std::optional<Kind> last_kind() const;
  void finish_start(Result<StartedInfo> result);
  void finish_teardown(Result<void> result);
  void fail_start(Error error);
  void fail_teardown(Error error);

  void run_start();
  void check_idle_timeout(std::function<void(const Result<void>&)> next);
  void resolve_template(std::shared_ptr<SandboxBackend> backend, StartRequest request);
  void send_start(const std::shared_ptr<SandboxBackend>& backend, StartRequest request);
  void identified(std::uint64_t serial, const ProviderSandboxId& id);
  void start_answered(Result<StartResult> result);
  void limit_start();
  void hurry_start();
  void cancel_start();
  void give_start_up(std::uint64_t serial);
  void answered_too_late(SandboxBackend& backend, const Result<StartResult>& result);
  void run_start_hook(StartedInfo info);
  void run_after_start(StartedInfo info, const Result<void>& result);
  void start_hook_done(StartedInfo info, const Result<void>& result);
  Result<StartRequest> start_request();
  StartedInfo connected() const;

  void run_teardown(SandboxStatus status, const TeardownHook& hook, bool with_hook);
  void send_teardown();
  void ask_teardown();
  void teardown_answered(Result<void> result);

  void set_status(SandboxStatus status, std::optional<std::string> error = {});
  void end_epoch();
  void forget_machine();
  std::shared_ptr<Sandbox> keep() const { return owner_.lock(); }

  const Lane lane_;
  const Plan plan_;
  const std::shared_ptr<Deadlines> deadlines_;
  const EndedFn ended_;
  std::weak_ptr<Sandbox> owner_;

  std::deque<Job> queue_;
  std::optional<Job> current_;
  bool busy_ = false;  // a job runs, or its callers are being answered

  std::shared_ptr<SandboxBackend> backend_;
  std::vector<Handler<std::shared_ptr<SandboxBackend>>> backend_waiters_;

  std::uint64_t epoch_ = 1;
  std::uint64_t destroyed_until_ = 0;  // epochs up to this one ended with their machine
  std::uint64_t generation_ = 0;
  std::uint64_t serial_ = 0;           // of start jobs, to fence off what comes too late
  std::shared_ptr<Pending> starting_;  // the provider's start
  bool start_cancelled_ = false;       // of the start job that runs, as the next
  bool start_overdue_ = false;
  std::string idempotency_key_;        // of a start that has not succeeded yet
  std::vector<std::string> warnings_;  // of the start that runs
  std::optional<ProviderSandboxId> id_before_;
  std::optional<std::string> start_from_;
  bool machine_known_ = false;
  bool untouched_ = true;    // no start was tried, or nothing is left of it
  bool setup_open_ = false;  // this machine's hook has not succeeded yet
  bool setup_was_open_ = false;

  mutable std::mutex mutex_;
  Snapshot snapshot_;
  Hooks hooks_;  // on_start is guarded, the others never change
};

}  // namespace sandforge::sandbox
