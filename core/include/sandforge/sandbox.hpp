// A sandbox: one machine, its life cycle and its commands, the same on every provider.
// Sources: the FactorySandbox document and the workspace-sandbox contract.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "sandforge/backend.hpp"
#include "sandforge/process.hpp"
#include "sandforge/snapshots.hpp"

namespace sandforge {

enum class SandboxStatus : std::uint8_t {
  pending,
  initializing,
  ready,
  starting,
  running,
  stopping,
  stopped,
  destroying,
  destroyed,
  error,
};
std::string_view to_string(SandboxStatus status) noexcept;
std::string_view to_string(StartOutcome outcome) noexcept;
std::string_view to_string(Provenance provenance) noexcept;

class Files;
class Sandbox;

struct StartedInfo {
  StartOutcome outcome = StartOutcome::unknown;
  Provenance provenance = Provenance::none;
  bool setup_unfinished = false;  // an earlier start made the machine, and its hook did not succeed
  std::uint64_t generation = 0;   // counts the machines that this object had
  std::optional<TemplateId> template_pending;
  std::optional<std::chrono::milliseconds> template_retry_after;
  std::vector<std::string> warnings;
  std::vector<std::string> env_names;  // variables that a machine which ran before has, if it tells
};

// Runs once per start that booted or reattached, before start answers. While it runs the sandbox is
// running, for everybody: commands, of the hook or of others, go through at once and fail with
// conflict or gone, without another start, when the machine is lost meanwhile. It must not wait for
// a stop or destroy. An error, a throw, or a dropped handler fails the start: "Sandbox '<id>'
// onStart hook failed: <message>". On the lane; the handler may be called from any thread.
using StartHook = std::function<void(std::shared_ptr<Sandbox>, StartedInfo, Handler<void>)>;
// Before the provider stops or destroys; not for a destroy before any start. Commands go through as
// in a StartHook. An error fails that call and leaves the machine. On the lane.
using TeardownHook = std::function<void(std::shared_ptr<Sandbox>, Handler<void>)>;

struct Hooks {
  Hooks() = default;
  StartHook on_start;
  // After on_start, or the hook that set_on_start put there or none, however it ended; before start
  // answers. Its error, throw or dropped handler fails the start as the hook's would. On the lane.
  std::function<void(Handler<void>)> after_start;
  TeardownHook on_stop;
  TeardownHook on_destroy;
  // As soon as the machine exists: store the id before anything can be lost. On the lane.
  std::function<void(const ProviderSandboxId&)> on_identity;
};

// Canonical JSON of the template to boot from, or nothing. Asked on the lane, late, and only before
// a start that has no machine to go back to. Its error is a warning: the start goes on without.
using TemplateFn = std::function<void(Handler<std::optional<std::string>>)>;

// text replaces the default instructions; a function is given the default.
using Instructions =
    std::variant<std::monostate, std::string, std::function<std::string(std::string)>>;

struct SandboxConfig {
  SandboxConfig() = default;
  // Empty: the context's session id, else one is made up and there are no checkpoints. Refused are
  // `.`, `..`, separators, control characters, invalid UTF-8, more than 255 bytes.
  std::string id;
  std::string name;                                  // empty: the provider's name
  std::shared_ptr<const SessionContext> context;     // null: made of id
  json::Object settings;                             // effective
  std::optional<std::chrono::milliseconds> timeout;  // default of exec; absent or 0: none
  std::optional<std::string> working_directory;
  std::optional<std::chrono::milliseconds> idle_timeout;
  std::optional<std::string> checkpoint_name;       // absent: the id, where the caller chose it
  std::optional<std::string> seed_checkpoint_name;  // boot-only, while the first does not exist
  // Of a start up to its hook, which is then cancelled and fails with timeout; absent or 0: none.
  std::optional<std::chrono::milliseconds> start_timeout;
  // How long a stop or a destroy waits for a start before it is cancelled.
  std::chrono::milliseconds start_patience{10'000};
  // What a provider gets to end a start that is cancelled. Then the start fails with timeout all
  // the same, and what waits for it goes on.
  std::chrono::milliseconds cancel_grace{10'000};
  std::optional<EnvMap> env;  // the sandbox's own, where the context's function gives none
  EnvMap overlay;             // seed of the runtime overlay
  EnvMap left_env;  // laid over env at each start and left with the machine, for hosts to come
  TemplateFn template_document;  // null: none
  Instructions instructions;
  Hooks hooks;
};

struct CloneOptions {
  CloneOptions() = default;
  std::optional<std::string> id;
  std::optional<ProviderSandboxId> sandbox_id;  // never inherited
  std::optional<EnvMap> env;                    // replaces, never merges
  std::optional<std::string> working_directory;
  std::optional<std::chrono::milliseconds> idle_timeout;
  std::optional<std::string> checkpoint_name;
  std::optional<std::string> seed_checkpoint_name;
};

struct SandboxInfo {
  std::string id;
  std::string name;
  std::string provider;
  SandboxStatus status = SandboxStatus::pending;
  std::int64_t created_at_ns = 0;
  std::optional<std::int64_t> last_used_at_ns;
  std::optional<std::int64_t> timeout_at_ns;
  std::optional<std::string> error;  // when status is error
  MachineInfo machine;
  json::Object metadata;  // sandboxId, providerResourceId, platformStatus where they exist
};
json::Value to_json(const SandboxInfo& info);

// Thread rule: every function from any thread; the blocking forms not on a thread of the Runtime.
class Sandbox : public std::enable_shared_from_this<Sandbox> {
 public:
  // Unstarted; no I/O. invalid: the configuration contradicts itself. The provider is asked for its
  // object when that is first needed, and what it refuses is the error of that call. The sandbox
  // keeps the runtime's lanes, so the runtime must outlive it. Dropping a sandbox leaves its
  // machine and its processes alone.
  static Result<std::shared_ptr<Sandbox>> create(Runtime& runtime,
                                                 std::shared_ptr<ProviderBackend> provider,
                                                 SandboxConfig config);
  virtual ~Sandbox() = default;

  virtual const std::string& id() const = 0;
  virtual const std::string& name() const = 0;
  virtual const std::string& provider() const = 0;
  virtual SandboxStatus status() const = 0;
  virtual std::optional<ProviderSandboxId> sandbox_id() const = 0;
  virtual std::optional<std::string> working_directory() const = 0;
  virtual std::optional<StartedInfo> started() const = 0;  // of the last start

  // start, stop and destroy take effect in the order of their calls, one after the other; calls of
  // one kind in a row share one result. What is done already succeeds without asking the provider.
  // A stop or destroy that waits too long for a start cancels it, unless its hook runs already.

  // Start on running answers connected. A failed start can be tried again, also by a command. gone:
  // the machine that was known no longer exists; the next start provisions anew.
  virtual void async_start(Handler<StartedInfo> done) = 0;
  virtual void async_stop(Handler<void> done) = 0;
  // Works without a start, which it never makes. Destroying what is gone succeeds. A start
  // afterwards provisions anew.
  virtual void async_destroy(Handler<void> done) = 0;
  virtual void async_info(Handler<SandboxInfo> done) = 0;
  virtual void async_instructions(Handler<std::string> done) = 0;

  // Commands start the sandbox when it does not run, but not one that was destroyed (gone). A
  // machine that was stopped from outside is started again and the command runs; one that is gone
  // fails the command with gone before it started, and the next call provisions anew. A command is
  // sent again only when it provably never started.
  //
  // A result, not an error, is: any exit code, a timeout and a stop (also those before the start,
  // then with command_may_have_started false), and every end of a command that may have started. An
  // error: a command that did not start.

  // Shell text; args are quoted so that every byte but NUL survives.
  virtual void async_execute_command(std::string command, std::vector<std::string> args,
                                     ExecOptions options, Handler<CommandResult> done) = 0;
  // No shell.
  virtual void async_exec(std::vector<std::string> argv, ExecOptions options,
                          Handler<CommandResult> done) = 0;
  // Answers as soon as the process has started; a timeout or a stop before that is an error. What
  // the options name goes before what the command brings along; stdin_pipe and window are the
  // options'.
  virtual void async_spawn(Command command, SpawnOptions options,
                           Handler<std::shared_ptr<Process>> done) = 0;

  // Processes of spawn, and where the provider can those of earlier hosts. To see the latter it
  // starts a sandbox that is pending or failed, never one that is stopped, destroyed or on its way
  // there. Ended processes that nobody reads are kept up to 1024 and 64 MiB of output.
  virtual void async_list_processes(Handler<std::vector<ProcessInfo>> done) = 0;
  // Null when unknown or released. A process that has ended is given once, then forgotten.
  virtual void async_get_process(ProcessId id, Handler<std::shared_ptr<Process>> done) = 0;
  // One more reader of a process that an earlier host started, from a cursor on. The list stays as
  // it is until a reader has come to the end of a process: then the provider may forget it. Null
  // when unknown, also where the provider keeps none. conflict: this object has it already.
  virtual void async_attach_process(ProcessId id, AttachOptions options,
                                    Handler<std::shared_ptr<Process>> done) = 0;
  // false: unknown or already ended. Afterwards the process is forgotten.
  virtual void async_kill_process(ProcessId id, Handler<bool> done) = 0;
  virtual void release_process(const ProcessId& id) = 0;

  // Its files (sandforge/files.hpp). Never null; where the provider serves none every call is
  // unsupported. Keeps the sandbox.
  virtual std::shared_ptr<Files> files() = 0;

  // Checkpoints: kept states of the file system (sandforge/snapshots.hpp). unsupported,
  // "feature.checkpoints": the provider has none.

  // Captures the file system under the sandbox's own checkpoint name, or under another one. Without
  // a name, and while the sandbox does not run, it captures nothing, starts nothing and says so.
  // Captures of a sandbox run one after the other; a stop or a destroy waits for them as it does
  // for a start.
  virtual void async_snapshot(SnapshotOptions options, Handler<SnapshotResult> done) = 0;
  // Of all sandboxes of the provider that this one can see, newest first. Starts nothing.
  virtual void async_list_checkpoints(Handler<std::vector<Checkpoint>> done) = 0;
  // What is gone succeeds. Nothing else ever deletes a checkpoint.
  virtual void async_remove_checkpoint(std::string name, Handler<void> done) = 0;
  // The next fresh start boots from this checkpoint, before the sandbox's own and the seed. A start
  // that finds its machine answers connected and leaves it for a later one. not_found: no such one.
  virtual void async_start_from(std::string name, Handler<void> done) = 0;

  // Overlay of the environment, merged into every command from now on. The updater gets a copy;
  // throws InvalidArgumentError for what is no environment. Not from within an updater.
  virtual void set_env(std::function<EnvMap(EnvMap)> updater) = 0;
  virtual EnvMap env() const = 0;
  // The updater is given the present hook and returns the one of later starts.
  virtual void set_on_start(std::function<StartHook(StartHook)> updater) = 0;

  // Unstarted sibling: provider, options and defaults are the same; id, sandbox id, env and idle
  // timeout are replaced, hooks are not inherited. No I/O.
  virtual Result<std::shared_ptr<Sandbox>> clone(CloneOptions options) const = 0;

  // Blocking forms: throw the Error.
  StartedInfo start();
  void stop();
  void destroy();
  SandboxInfo info();
  std::string instructions();
  CommandResult execute_command(std::string command, std::vector<std::string> args = {},
                                ExecOptions options = {});
  CommandResult exec(std::vector<std::string> argv, ExecOptions options = {});
  std::shared_ptr<Process> spawn(Command command, SpawnOptions options = {});
  std::vector<ProcessInfo> list_processes();
  std::shared_ptr<Process> get_process(ProcessId id);
  std::shared_ptr<Process> attach_process(ProcessId id, AttachOptions options = {});
  bool kill_process(ProcessId id);
  SnapshotResult snapshot(SnapshotOptions options = {});
  std::vector<Checkpoint> list_checkpoints();
  void remove_checkpoint(std::string name);
  void start_from(std::string name);
};

}  // namespace sandforge
