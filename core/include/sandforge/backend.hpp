// What core needs of a provider, whatever stands behind it: a plugin in this process, a plugin in a
// runner, code registered by the host, or a decorator around one of these.
//
// Every call comes on the object's lane and every callback is given on it, unless a comment says
// otherwise. Handlers and `done` come exactly once and never from inside the call. Errors are those
// of sandforge/error.hpp; what a call refuses at once it returns, what fails later its handler
// gets. Source: sandforge/abi.h, Commands and processes, Sandbox, Provider: the same objects in
// C++.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/command.hpp"
#include "sandforge/context.hpp"
#include "sandforge/error.hpp"
#include "sandforge/handler.hpp"
#include "sandforge/ids.hpp"
#include "sandforge/runtime.hpp"

namespace sandforge {

using Bytes = std::span<const std::byte>;

enum class Channel : std::uint32_t { data = 0, out = 1, err = 2 };

// Bytes of output over the whole stream.
struct StreamEnd {
  std::uint64_t delivered = 0;
  std::uint64_t dropped = 0;  // existed, and went to nobody
};

// Events of a running process, in this order. Held by the backend until done returned.
class ProcessSink {
 public:
  virtual ~ProcessSink() = default;
  // At most once, before any output. pid: inside the sandbox; 0: not known.
  virtual void on_started(ProcessId id, std::int64_t pid) = 0;
  // Never more bytes than were granted. Borrowed for the call.
  virtual void on_data(Channel channel, Bytes data) = 0;
  // There is room again after a short write.
  virtual void on_writable() = 0;
  // The leader has ended, at most once; output may still follow.
  virtual void on_exit(const Exit& exit) = 0;
  // The last call. No error: the regular end.
  virtual void done(std::optional<Error> error, StreamEnd end) = 0;
};

// A process that was started. Dropping it lets go of it; it runs on.
class ProcessBackend {
 public:
  virtual ~ProcessBackend() = default;
  // So many more bytes of output may come. [any]
  virtual void grant(std::uint64_t bytes) noexcept = 0;
  // How many bytes of input were taken; fewer than given: on_writable follows. conflict: the
  // process takes no input, or none any more.
  virtual Result<std::size_t> write(Bytes data) = 0;
  virtual Result<void> shutdown_write() = 0;  // end of the input; idempotent
  // Ends the whole tree: terminate, the command's grace, kill. Idempotent. [any]
  virtual void cancel() noexcept = 0;
  // Linux numbers, to the leader or the whole tree. gone: it has ended.
  virtual void signal(int signal, bool tree, Handler<void> done) = 0;
  // Of its terminal, in characters. unsupported: there are none here.
  virtual void resize(std::uint32_t cols, std::uint32_t rows, Handler<void> done) = 0;
};

enum class StartOutcome : std::uint8_t {
  unknown,
  created,    // a fresh machine, also one restored from a checkpoint
  connected,  // the same machine as before
};
// What a created machine was booted from.
enum class Provenance : std::uint8_t {
  none,        // connected, or the provider has no images
  exact,       // the template asked for
  family,      // an older build of its family
  base,        // the provider's base
  checkpoint,  // the session's own, or the one to start from
  seed,        // the seed checkpoint
};
enum class MachineState : std::uint8_t {
  unknown,
  absent,  // never started, or gone
  running,
  stopped,
};

struct StartRequest {
  EnvMap env;
  bool env_given = false;                        // env replaces the provider's default environment
  std::optional<std::string> template_document;  // canonical JSON; absent: no template
  std::string idempotency_key;  // one for all tries of a start: adopt what one of them left
  std::chrono::milliseconds timeout{0};   // 0: none
  std::optional<std::string> start_from;  // the checkpoint that a fresh machine boots from
};

struct StartResult {
  StartOutcome outcome = StartOutcome::unknown;
  Provenance provenance = Provenance::none;
  std::optional<ProviderSandboxId> sandbox_id;  // absent: the provider has none
  std::optional<std::string> working_directory;
  std::optional<TemplateId> template_pending;  // the exact template is still being built
  std::optional<std::chrono::milliseconds> template_retry_after;
  std::vector<std::string> warnings;  // for a person, without credentials
  std::vector<std::string>
      env_names;  // variables that a machine which ran before has, as far as told
};

// What the provider knows of its machine now; absent: not known.
struct MachineInfo {
  MachineState state = MachineState::unknown;
  std::optional<ProviderSandboxId> sandbox_id;
  std::optional<std::int64_t> created_at_ns;  // since the Unix epoch, as the next
  std::optional<std::int64_t> timeout_at_ns;
  std::optional<std::uint64_t> memory_mb, memory_used_mb, disk_mb, disk_used_mb;
  std::optional<std::uint64_t> cpu_millis;  // thousandths of a core
  json::Object metadata;  // providerResourceId, platformStatus, the provider's own
};

struct ProcessInfo {
  ProcessId id;
  std::int64_t pid = 0;  // inside the sandbox; 0: not known
  std::string command;   // bytes: shell text, or argv quoted for reading
  std::string tag;       // the caller's label
  bool running = false;
  bool detached = false;     // outlives the host's connection
  bool stray = false;        // a child that its command left behind
  std::optional<Exit> exit;  // absent while it runs
  OutputCursor first;        // oldest output still kept
  OutputCursor next;         // where the next output goes
};

// The processes extension.
class ProcessesBackend {
 public:
  virtual ~ProcessesBackend() = default;
  // What runs, and what ended and was not forgotten. Starts nothing.
  virtual void list(Handler<std::vector<ProcessInfo>> done) = 0;
  // The kept output from a cursor on, then what follows; window: first credit, bytes. What is no
  // longer kept counts as dropped. not_found: no such process.
  virtual Result<std::shared_ptr<ProcessBackend>> attach(const ProcessId& id, OutputCursor from,
                                                         std::uint64_t window,
                                                         std::shared_ptr<ProcessSink> sink) = 0;
  virtual void signal(const ProcessId& id, int signal, bool tree, Handler<void> done) = 0;
  virtual void forget(const ProcessId& id, Handler<void> done) = 0;  // an ended one, and its output
};

class FilesBackend;      // sandforge/files.hpp
class SnapshotsBackend;  // sandforge/snapshots.hpp

// One sandbox, unstarted at first. start, stop and destroy are never under way at once. Dropping it
// leaves its machine alone.
class SandboxBackend {
 public:
  virtual ~SandboxBackend() = default;
  // Finds and connects the machine, or creates it. on_identity: at most once, before done, as soon
  // as the machine exists. gone: the machine that was known no longer exists.
  virtual std::shared_ptr<Pending> start(StartRequest request,
                                         std::function<void(ProviderSandboxId)> on_identity,
                                         Handler<StartResult> done) = 0;
  virtual void stop(Handler<void> done) = 0;         // what is stopped already succeeds
  virtual void destroy(Handler<void> done) = 0;      // also without a start; what is gone succeeds
  virtual void info(Handler<MachineInfo> done) = 0;  // looks, starts nothing
  virtual void instructions(Handler<std::string> done) = 0;  // the default text for an agent
  // Runs a command in the started sandbox. gone: the machine no longer exists and nothing ran.
  // conflict: it is stopped and nothing ran.
  virtual Result<std::shared_ptr<ProcessBackend>> spawn(const Command& command,
                                                        std::shared_ptr<ProcessSink> sink) = 0;
  virtual ProcessesBackend* processes() noexcept = 0;                 // null: not offered
  virtual FilesBackend* files() noexcept { return nullptr; }          // the same
  virtual SnapshotsBackend* snapshots() noexcept { return nullptr; }  // the same
};

// What describe.features name, as far as core asks for it: what is not named is refused as
// unsupported "feature.NAME" before anything starts, never ignored. Time limits and cancelling need
// none of them.
namespace feature {
inline constexpr std::string_view kStdin = "spawn.stdin";         // Command::stdin_pipe
inline constexpr std::string_view kUser = "spawn.user";           // Command::user
inline constexpr std::string_view kDetach = "spawn.detach";       // Command::detach
inline constexpr std::string_view kSignal = "spawn.signal";       // Process::async_signal
inline constexpr std::string_view kKill = "spawn.kill";           // Process::async_kill, also by id
inline constexpr std::string_view kEnv = "env.per_command";       // Command::env
inline constexpr std::string_view kUnset = "env.unset";           // a name without a value in it
inline constexpr std::string_view kPty = "pty";                   // Command::tty
inline constexpr std::string_view kCheckpoints = "checkpoints";   // Sandbox::async_snapshot
inline constexpr std::string_view kCombined = "stderr.combined";  // Command::combined
// Without it the output is combined, whatever a command says.
inline constexpr std::string_view kSeparate = "stderr.separate";
}  // namespace feature

// The features that a provider names. Never null; does not change while the provider is open.
using Features = std::shared_ptr<const std::vector<std::string>>;
bool has_feature(const Features& features, std::string_view name) noexcept;

struct Description {
  json::Value settings_schema;  // draft-07; its defaults are the effective ones
  json::Object describe;        // {"features": […], …}
  std::vector<std::string> features;
  bool has_template = false;
  bool has_builds = false;
  bool has_build_history = false;
};

struct CreateRequest {
  std::shared_ptr<const SessionContext> context;    // may be null
  Lane lane;                                        // the sandbox's
  json::Object settings;                            // effective: stored with defaults filled in
  std::optional<std::string> working_directory;     // absent: the context's, else the provider's
  std::optional<std::string> checkpoint_name;       // absent: it has none, so captures nothing
  std::optional<std::string> seed_checkpoint_name;  // when the first does not exist
  std::optional<std::chrono::milliseconds> idle_timeout;  // absent: by settings and options
};

// A provider opened with its options.
class ProviderBackend {
 public:
  virtual ~ProviderBackend() = default;
  virtual const std::string& name() const noexcept = 0;
  virtual const Lane& lane() const noexcept = 0;
  virtual void describe(Handler<Description> done) = 0;
  // The features of describe, which is asked once for all sandboxes; an error is not kept. The
  // caller keeps the provider until the answer.
  virtual void features(Handler<Features> done);
  // An unstarted sandbox. No I/O. Settings may be empty, and the context may hold ids only.
  virtual Result<std::shared_ptr<SandboxBackend>> create(CreateRequest request) = 0;
  // The provider of a sandbox's clone. Null: this one. Another one where this one's objects are
  // bound to something of that sandbox alone. [any]
  virtual std::shared_ptr<ProviderBackend> for_clone() const { return nullptr; }

 private:
  Features features_;  // null: not known yet
};

}  // namespace sandforge
