// The Sandbox of core: configuration, life cycle, commands and processes put together.
#pragma once

#include <atomic>
#include <mutex>

#include "sandbox/captures.hpp"
#include "sandbox/lane_handler.hpp"
#include "sandbox/lifecycle.hpp"
#include "sandbox/process_table.hpp"
#include "sandforge/sandbox.hpp"

namespace sandforge::sandbox {

class SandboxImpl final : public Sandbox, public CommandHost {
 public:
  // config is complete: it has an id, a name and a context.
  SandboxImpl(Runtime& runtime, std::shared_ptr<ProviderBackend> provider, SandboxConfig config);
  void begin() { life_.set_owner(weak_from_this()); }

  const std::string& id() const override { return config_.id; }
  const std::string& name() const override { return config_.name; }
  const std::string& provider() const override { return provider_->name(); }
  SandboxStatus status() const override { return life_.status(); }
  std::optional<ProviderSandboxId> sandbox_id() const override;
  std::optional<std::string> working_directory() const override;
  std::optional<StartedInfo> started() const override;

  void async_start(Handler<StartedInfo> done) override;
  void async_stop(Handler<void> done) override;
  void async_destroy(Handler<void> done) override;
  void async_info(Handler<SandboxInfo> done) override;
  void async_instructions(Handler<std::string> done) override;

  void async_execute_command(std::string command, std::vector<std::string> args,
                             ExecOptions options, Handler<CommandResult> done) override;
  void async_exec(std::vector<std::string> argv, ExecOptions options,
                  Handler<CommandResult> done) override;
  void async_spawn(Command command, SpawnOptions options,
                   Handler<std::shared_ptr<Process>> done) override;

  void async_list_processes(Handler<std::vector<ProcessInfo>> done) override;
  void async_get_process(ProcessId id, Handler<std::shared_ptr<Process>> done) override;
  void async_attach_process(ProcessId id, AttachOptions options,
                            Handler<std::shared_ptr<Process>> done) override;
  void async_kill_process(ProcessId id, Handler<bool> done) override;
  void release_process(const ProcessId& id) override;

  std::shared_ptr<Files> files() override;
  void async_snapshot(SnapshotOptions options, Handler<SnapshotResult> done) override;
  void async_list_checkpoints(Handler<std::vector<Checkpoint>> done) override;
  void async_remove_checkpoint(std::string name, Handler<void> done) override;
  void async_start_from(std::string name, Handler<void> done) override;

  void set_env(std::function<EnvMap(EnvMap)> updater) override;
  EnvMap env() const override;
  void set_on_start(std::function<StartHook(StartHook)> updater) override;
  Result<std::shared_ptr<Sandbox>> clone(CloneOptions options) const override;

  void features(Handler<Features> done) override;
  std::optional<Machine> machine() override { return life_.machine(); }
  void ensure_running(Handler<Machine> done) override { life_.ensure_running(std::move(done)); }
  void machine_lost(std::uint64_t epoch, bool gone) override { life_.lost(epoch, gone); }
  bool destroyed(std::uint64_t epoch) override { return life_.destroyed(epoch); }
  void used() override { touch(); }
  void process_sent(const std::shared_ptr<ProcessImpl>& process) override { table_.sent(process); }
  void process_started(const std::shared_ptr<ProcessImpl>& process) override;
  void process_ended(const std::shared_ptr<ProcessImpl>& process) override;

 private:
  std::shared_ptr<SandboxImpl> self() {
    return std::static_pointer_cast<SandboxImpl>(shared_from_this());
  }
  template <class T>
  void refuse(Handler<T> done, Error error) const {
    post(lane_, [done = std::move(done), error = std::move(error)]() mutable {
      std::move(done)(std::move(error));
    });
  }
  void run(Command command, ExecOptions options, Handler<CommandResult> done);
  ProcessImpl::Plan plan(Command command, ExecOptions& options, std::uint64_t retained) const;
  void merge_env(EnvMap& env) const;
  void for_processes(Handler<std::optional<Machine>> next);
  template <class T, class Use>
  void with_snapshots(Handler<T> done, Use use);
  void capture(SnapshotOptions options, Handler<SnapshotResult> done);
  SandboxInfo info_of(MachineInfo machine) const;
  void touch();

  Runtime& runtime_;
  const std::shared_ptr<ProviderBackend> provider_;
  const SandboxConfig config_;
  const Lane lane_;
  const std::int64_t created_at_ns_;
  const std::string request_prefix_;
  mutable std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::int64_t> last_used_ns_{0};
  const std::shared_ptr<Deadlines> deadlines_;
  const std::optional<std::string> checkpoint_name_;
  const std::shared_ptr<Captures> captures_;
  Lifecycle life_;
  ProcessTable table_;
  Features features_;  // null: not asked for yet

  std::mutex updates_;  // one updater at a time
  mutable std::mutex overlay_mutex_;
  EnvMap overlay_;
};

}  // namespace sandforge::sandbox
