// What core needs of a provider, whatever stands behind it: a plugin in this process, a plugin in a
// runner, code registered by the host, or a decorator around one of these.
//
// Every call comes on the object's lane and every callback is given on it, unless a comment says
// otherwise. Handlers and `done` come exactly once and never from inside the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
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

struct StreamEnd {
  std::uint64_t delivered = 0;
  std::uint64_t dropped = 0;
};

// Events of a running process. Held by the backend until done returned.
class ProcessSink {
 public:
  virtual ~ProcessSink() = default;
  virtual void on_started(ProcessId id, std::int64_t pid) = 0;
  virtual void on_data(Channel channel, Bytes data) = 0;
  virtual void on_writable() = 0;
  virtual void on_exit(const Exit& exit) = 0;
  virtual void done(std::optional<Error> error, StreamEnd end) = 0;
};

class ProcessBackend {
 public:
  virtual ~ProcessBackend() = default;
  virtual void grant(std::uint64_t bytes) noexcept = 0;  // any thread
  virtual Result<std::size_t> write(Bytes data) = 0;     // how many bytes were taken
  virtual Result<void> shutdown_write() = 0;
  virtual void cancel() noexcept = 0;  // any thread; ends the whole tree
  virtual void signal(int signal, bool tree, Handler<void> done) = 0;
  virtual void resize(std::uint32_t cols, std::uint32_t rows, Handler<void> done) = 0;
};

enum class StartOutcome : std::uint8_t { unknown, created, connected };
enum class Provenance : std::uint8_t { none, exact, family, base, checkpoint, seed };
enum class MachineState : std::uint8_t { unknown, absent, running, stopped };

struct StartRequest {
  EnvMap env;
  bool env_given = false;  // env replaces the provider's default environment
  std::optional<std::string> template_document;
  std::string idempotency_key;
  std::chrono::milliseconds timeout{0};
};

struct StartResult {
  StartOutcome outcome = StartOutcome::unknown;
  Provenance provenance = Provenance::none;
  std::optional<ProviderSandboxId> sandbox_id;
  std::optional<std::string> working_directory;
  std::optional<TemplateId> template_pending;
  std::optional<std::chrono::milliseconds> template_retry_after;
  std::vector<std::string> warnings;
};

struct MachineInfo {
  MachineState state = MachineState::unknown;
  std::optional<ProviderSandboxId> sandbox_id;
  std::optional<std::int64_t> created_at_ns;
  std::optional<std::int64_t> timeout_at_ns;
  std::optional<std::uint64_t> memory_mb, memory_used_mb, disk_mb, disk_used_mb, cpu_millis;
  json::Object metadata;
};

// Offsets in each output stream, in bytes from its beginning.
struct OutputCursor {
  std::uint64_t out = 0;
  std::uint64_t err = 0;
};

struct ProcessInfo {
  ProcessId id;
  std::int64_t pid = 0;
  std::string command;
  std::string tag;
  bool running = false;
  bool detached = false;
  bool stray = false;
  std::optional<Exit> exit;
  OutputCursor first;  // oldest output still kept
  OutputCursor next;   // where the next output goes
};

// The processes extension.
class ProcessesBackend {
 public:
  virtual ~ProcessesBackend() = default;
  virtual void list(Handler<std::vector<ProcessInfo>> done) = 0;
  virtual Result<std::shared_ptr<ProcessBackend>> attach(const ProcessId& id, OutputCursor from,
                                                         std::uint64_t window,
                                                         std::shared_ptr<ProcessSink> sink) = 0;
  virtual void signal(const ProcessId& id, int signal, bool tree, Handler<void> done) = 0;
  virtual void forget(const ProcessId& id, Handler<void> done) = 0;
};

class SandboxBackend {
 public:
  virtual ~SandboxBackend() = default;
  // on_identity: at most once, before done, as soon as the machine exists.
  virtual std::shared_ptr<Pending> start(StartRequest request,
                                         std::function<void(ProviderSandboxId)> on_identity,
                                         Handler<StartResult> done) = 0;
  virtual void stop(Handler<void> done) = 0;
  virtual void destroy(Handler<void> done) = 0;
  virtual void info(Handler<MachineInfo> done) = 0;
  virtual void instructions(Handler<std::string> done) = 0;
  virtual Result<std::shared_ptr<ProcessBackend>> spawn(const Command& command,
                                                        std::shared_ptr<ProcessSink> sink) = 0;
  virtual ProcessesBackend* processes() noexcept = 0;  // null: not offered
};

struct Description {
  json::Value settings_schema;
  json::Object describe;  // {"features": […], …}
  std::vector<std::string> features;
  bool has_template = false;
  bool has_builds = false;
  bool has_build_history = false;
};

struct CreateRequest {
  std::shared_ptr<const SessionContext> context;
  Lane lane;
  json::Object settings;  // effective: stored with defaults filled in
  std::optional<std::string> working_directory;
  std::optional<std::string> checkpoint_name;
  std::optional<std::string> seed_checkpoint_name;
  std::optional<std::chrono::milliseconds> idle_timeout;
};

// A provider opened with its options.
class ProviderBackend {
 public:
  virtual ~ProviderBackend() = default;
  virtual const std::string& name() const noexcept = 0;
  virtual const Lane& lane() const noexcept = 0;
  virtual void describe(Handler<Description> done) = 0;
  virtual Result<std::shared_ptr<SandboxBackend>> create(CreateRequest request) = 0;  // no I/O
};

}  // namespace sandforge
