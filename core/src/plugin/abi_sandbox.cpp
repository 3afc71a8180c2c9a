#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "plugin/abi_backend.hpp"
#include "plugin/abi_call.hpp"
#include "plugin/abi_command.hpp"
#include "plugin/abi_files.hpp"
#include "plugin/abi_snapshots.hpp"
#include "plugin/members.hpp"

namespace sandforge::plugin {
namespace {

template <class E>
E known(std::uint32_t raw, E last) {
  return raw <= static_cast<std::uint32_t>(last) ? static_cast<E>(raw) : E{};
}

std::optional<std::uint64_t> number(std::uint64_t raw) {
  return raw == SF_NONE ? std::nullopt : std::optional(raw);
}

std::optional<std::int64_t> time(std::int64_t raw) {
  return raw == 0 ? std::nullopt : std::optional(raw);
}

template <class Id>
std::optional<Id> id(sf_str text) {
  auto copy = copy_optional(text, 4096);
  if (!copy || copy->empty()) return std::nullopt;
  return Id(std::move(*copy));
}

Result<StartResult> read_start(Plugin& plugin, const sf_start_result* result) {
  if (result == nullptr || !SF_HAS(result, warnings)) {
    plugin.faults.report(Fault::missing_value, "start answered without a result");
    Error error = crashed(plugin, "start answered without a result", "missing_value");
    error.may_have_started = true;
    return error;
  }
  StartResult out;
  out.outcome = known(result->outcome, StartOutcome::connected);
  out.provenance = known(result->provenance, Provenance::seed);
  out.sandbox_id = id<ProviderSandboxId>(result->sandbox_id);
  out.working_directory = copy_optional(result->working_directory, 65536);
  out.template_pending = id<TemplateId>(result->template_pending_id);
  if (const auto after = number(result->template_retry_after_ms))
    out.template_retry_after = std::chrono::milliseconds(
        std::min<std::uint64_t>(*after, std::numeric_limits<std::int32_t>::max()));
  out.warnings = copy_strings(plugin, result->warnings, "the warnings of start");
  if (SF_HAS(result, env_names))
    out.env_names = copy_strings(plugin, result->env_names, "the variables of a machine");
  return out;
}

// The call of start also has an event before its end.
class StartCall final : public Call<StartResult> {
 public:
  StartCall(std::shared_ptr<SandboxCore> core, std::function<void(ProviderSandboxId)> on_identity,
            Handler<StartResult> done)
      : Call<StartResult>(core->plugin, core->lane, "sandbox.start", core, std::move(done)),
        on_identity_(std::move(on_identity)) {}

  void identity(std::string sandbox_id) {
    if (given_.exchange(true)) {
      plugin().faults.report(Fault::out_of_order, "on_identity twice");
      return;
    }
    note_end();
    lane().post([self = shared_from_this(), this, text = std::move(sandbox_id)]() mutable {
      if (!is_refused() && on_identity_) on_identity_(ProviderSandboxId(std::move(text)));
    });
  }

 private:
  const std::function<void(ProviderSandboxId)> on_identity_;
  std::atomic<bool> given_{false};
};

void on_identity(void* ctx, sf_str sandbox_id) noexcept {
  const auto object = object_of(ctx, &Call<StartResult>::kKind, false, "on_identity");
  if (!object) return;
  const auto call = std::static_pointer_cast<Call<StartResult>>(object);
  try {
    static_cast<StartCall&>(*call).identity(copy_text(sandbox_id, 4096));
  } catch (...) {
    call->plugin().faults.report(Fault::bad_value, "on_identity could not be copied");
  }
}

void done_start(void* ctx, const sf_error* error, const sf_start_result* result) noexcept {
  complete<StartResult>(ctx, error, "start.done",
                        [result](Plugin& plugin) { return read_start(plugin, result); });
}

Result<MachineInfo> read_info(Plugin& plugin, const sf_sandbox_info* info) {
  if (info == nullptr || !SF_HAS(info, metadata))
    return crashed(plugin, "info answered without a result", "missing_value");
  MachineInfo out;
  out.state = known(info->state, MachineState::stopped);
  out.sandbox_id = id<ProviderSandboxId>(info->sandbox_id);
  out.created_at_ns = time(info->created_at);
  out.timeout_at_ns = time(info->timeout_at);
  out.memory_mb = number(info->memory_mb);
  out.memory_used_mb = number(info->memory_used_mb);
  out.disk_mb = number(info->disk_mb);
  out.disk_used_mb = number(info->disk_used_mb);
  out.cpu_millis = number(info->cpu_millis);
  if (view(info->metadata).empty()) return out;
  auto metadata = copy_json(plugin, info->metadata, "the metadata of info");
  if (!metadata) return std::move(metadata).error();
  if (!metadata->is_object()) return crashed(plugin, "the metadata of info is no JSON object");
  out.metadata = std::move(metadata->as_object());
  return out;
}

void done_info(void* ctx, const sf_error* error, const sf_sandbox_info* info) noexcept {
  complete<MachineInfo>(ctx, error, "info.done",
                        [info](Plugin& plugin) { return read_info(plugin, info); });
}

class AbiSandbox final : public SandboxBackend, public std::enable_shared_from_this<AbiSandbox> {
 public:
  explicit AbiSandbox(std::shared_ptr<SandboxCore> core)
      : core_(std::move(core)),
        processes_(core_->processes != nullptr ? make_processes(core_) : nullptr),
        files_(core_->files != nullptr ? make_files(core_) : nullptr),
        snapshots_(make_snapshots(core_)) {}

  std::shared_ptr<Pending> start(StartRequest request,
                                 std::function<void(ProviderSandboxId)> identity,
                                 Handler<StartResult> done) override {
    if (auto name = std::exchange(request.start_from, std::nullopt))
      return boot_from(
          core_->lane, snapshots_.get(), *std::move(name),
          [self = shared_from_this(), request = std::move(request),
           identity = std::move(identity)](Handler<StartResult> next) {
            return self->start(request, identity, std::move(next));
          },
          std::move(done));
    const EnvView env(request.env);
    sf_start_request raw{};
    raw.struct_size = sizeof(raw);
    raw.env = env.data();
    raw.env_count = env.size();
    raw.template_document = to_str(request.template_document);
    raw.idempotency_key = to_str(request.idempotency_key);
    raw.timeout_ms = to_ms(request.timeout);
    raw.flags = request.env_given ? SF_START_ENV_GIVEN : 0;
    auto call = std::make_shared<StartCall>(core_, std::move(identity), std::move(done));
    return run_call<StartResult>(call, [&](void* ctx, sf_op** op) -> Result<void> {
      if (auto good = check_env(request.env); !good) return good;
      const sf_start_events events{sizeof(sf_start_events), ctx, &on_identity, &done_start};
      const sf_start_request* given = &raw;
      const sf_start_events* given_events = &events;
      return call_lane("sandbox.start", core_->raw->vtbl->start, given, given_events, op);
    });
  }

  void stop(Handler<void> done) override {
    simple("sandbox.stop", core_->raw->vtbl->stop, std::move(done));
  }
  void destroy(Handler<void> done) override {
    simple("sandbox.destroy", core_->raw->vtbl->destroy, std::move(done));
  }
  void info(Handler<MachineInfo> done) override {
    run_call(make_call<MachineInfo>("sandbox.info", std::move(done)), [&](void* ctx, sf_op** op) {
      return call_lane("sandbox.info", core_->raw->vtbl->info, sf_info_completion{ctx, &done_info},
                       op);
    });
  }
  void instructions(Handler<std::string> done) override {
    run_call(make_call<std::string>("sandbox.instructions", std::move(done)),
             [&](void* ctx, sf_op** op) {
               return call_lane("sandbox.instructions", core_->raw->vtbl->instructions,
                                sf_text_completion{ctx, &done_text}, op);
             });
  }

  Result<std::shared_ptr<ProcessBackend>> spawn(const Command& command,
                                                std::shared_ptr<ProcessSink> sink) override {
    if (auto good = check_command(command); !good) return std::move(good).error();
    if (command.tty && core_->pty == nullptr)
      return Error(Status::unsupported, "this provider has no terminals", "feature.pty");
    const CommandView raw(command);
    return start_process(
        core_, "sandbox.spawn", command.window, std::move(sink),
        [&](const sf_stream_events& io, const sf_process_events& events, sf_process** process) {
          return call_lane("sandbox.spawn", core_->raw->vtbl->spawn, raw.get(), &io, &events,
                           process);
        });
  }

  ProcessesBackend* processes() noexcept override { return processes_.get(); }
  FilesBackend* files() noexcept override { return files_.get(); }
  SnapshotsBackend* snapshots() noexcept override { return snapshots_.get(); }

 private:
  template <class... P, class... A>
  Result<void> call_lane(const char* what, sf_status (*fn)(sf_sandbox*, P...), A... args) {
    if (auto good = need_lane(core_->lane, what); !good) return good;
    return call_status(core_->plugin, what, fn, core_->raw, args...);
  }

  template <class T>
  std::shared_ptr<Call<T>> make_call(const char* what, Handler<T> done) {
    return std::make_shared<Call<T>>(core_->plugin, core_->lane, what, core_, std::move(done));
  }

  template <class Fn>
  void simple(const char* what, Fn fn, Handler<void> done) {
    run_call(make_call<void>(what, std::move(done)), [&](void* ctx, sf_op** op) {
      return call_lane(what, fn, sf_completion{ctx, &done_void}, op);
    });
  }

  const std::shared_ptr<SandboxCore> core_;
  const std::unique_ptr<ProcessesBackend> processes_;
  const std::unique_ptr<FilesBackend> files_;
  const std::unique_ptr<SnapshotsBackend> snapshots_;
};

template <class Ext>
const Ext* extension(SandboxCore& core, const char* name) {
  const auto* table = static_cast<const Ext*>(
      call_value(core.plugin, "sandbox.extension", core.raw->vtbl->extension, core.raw,
                 sf_str{name, std::string_view(name).size()}));
  return table;
}

void find_extensions(SandboxCore& core) {
  const auto* processes = extension<sf_processes_ext>(core, SF_EXT_PROCESSES);
  if (processes != nullptr) {
    if (SF_HAS_FN(processes, list) && SF_HAS_FN(processes, attach) &&
        SF_HAS_FN(processes, signal) && SF_HAS_FN(processes, forget)) {
      core.processes = processes;
    } else {
      core.plugin.faults.report(Fault::missing_value, SF_EXT_PROCESSES);
    }
  }
  const auto* files = extension<sf_files_ext>(core, SF_EXT_FILES);
  if (files != nullptr) {
    if (const char* missing = missing_member(files)) {
      core.plugin.faults.report(Fault::missing_value, std::string(SF_EXT_FILES ": ") + missing);
    } else {
      core.files = files;
    }
  }
  core.snapshots = usable_snapshots(core.plugin, extension<sf_snapshot_ext>(core, SF_EXT_SNAPSHOT));
  const auto* pty = extension<sf_pty_ext>(core, SF_EXT_PTY);
  if (pty == nullptr) return;
  if (SF_HAS_FN(pty, resize)) {
    core.pty = pty;
  } else {
    core.plugin.faults.report(Fault::missing_value, SF_EXT_PTY);
  }
}

}  // namespace

SandboxCore::SandboxCore(std::shared_ptr<ProviderCore> p, Lane l)
    : provider(std::move(p)),
      plugin(provider->plugin),
      lane(std::move(l)),
      lane_ref(plugin, lane) {}

SandboxCore::~SandboxCore() {
  if (raw == nullptr) return;
  // The provider goes after its sandbox was released, not merely after the release was posted.
  lane.post([keep = provider, this_plugin = &plugin, sandbox = raw] {
    call_value(*this_plugin, "sandbox.release", sandbox->vtbl->release, sandbox);
  });
}

Result<std::shared_ptr<SandboxBackend>> create_sandbox(std::shared_ptr<ProviderCore> provider,
                                                       CreateRequest request) {
  if (auto good = need_lane(provider->lane, "provider.create"); !good)
    return std::move(good).error();
  if (!request.lane)
    return Error(Status::internal, "a sandbox was created without a lane", "core.lane");
  Plugin& plugin = provider->plugin;
  auto core = std::make_shared<SandboxCore>(provider, std::move(request.lane));
  sf_context* context =
      request.context ? new HostContext(plugin, std::move(request.context)) : nullptr;
  const std::string settings = json::write(request.settings);

  sf_create_request raw{};
  raw.struct_size = sizeof(raw);
  raw.context = context;
  raw.lane = core->lane_ref.get();
  raw.settings = to_str(settings);
  raw.working_directory = to_str(request.working_directory);
  raw.checkpoint_name = to_str(request.checkpoint_name);
  raw.seed_checkpoint_name = to_str(request.seed_checkpoint_name);
  raw.idle_timeout_ms = request.idle_timeout ? to_ms(*request.idle_timeout) : SF_NONE;
  sf_sandbox* sandbox = nullptr;
  const sf_create_request* given = &raw;
  auto created = call_status(plugin, "provider.create", provider->raw->vtbl->create, provider->raw,
                             given, &sandbox);
  if (context != nullptr) HostContext::release(context);
  if (!created) return std::move(created).error();
  if (const char* missing = missing_member(sandbox)) {
    plugin.faults.report(Fault::missing_value, std::string("sandbox: ") + missing);
    return crashed(plugin, fmt::format("the sandbox lacks {}", missing), "missing_member");
  }
  core->raw = sandbox;
  find_extensions(*core);
  return std::shared_ptr<SandboxBackend>(std::make_shared<AbiSandbox>(std::move(core)));
}

}  // namespace sandforge::plugin
