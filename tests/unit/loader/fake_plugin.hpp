// A plugin inside the test program, made of C tables whose functions call hooks: it can be as good
// or as bad as a test wants.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugin/abi_backend.hpp"
#include "plugin/plugin.hpp"
#include "sandforge/abi.h"
#include "sandforge/ext/files.h"
#include "sandforge/ext/processes.h"
#include "sandforge/ext/pty.h"
#include "sandforge/ext/snapshot.h"

namespace sandforge::test {

inline sf_str str(const char* text) {
  return {text, std::string_view(text).size()};
}
inline std::string copy(sf_str text) {
  return text.ptr == nullptr ? "(null)" : std::string(text.ptr, text.len);
}

inline sf_status fail(const sf_error_sink* err, sf_status code, const char* message) {
  sf_error error{sizeof(error), code, 0, str(message), {nullptr, 0}, SF_NONE};
  if (err != nullptr) err->report(err->ctx, &error);
  return code;
}

struct FakeOp : sf_op {
  inline static std::atomic<int> alive{0};
  std::function<void()> on_cancel;

  explicit FakeOp(std::function<void()> cancelled = {}) : on_cancel(std::move(cancelled)) {
    static const sf_op_vtbl table = {
        sizeof(sf_op_vtbl),
        [](sf_op* self) noexcept {
          auto& op = *static_cast<FakeOp*>(self);
          if (op.on_cancel) op.on_cancel();
        },
        [](sf_op* self) noexcept { delete static_cast<FakeOp*>(self); }};
    vtbl = &table;
    ++alive;
  }
  ~FakeOp() { --alive; }

  static void give(sf_op** op, std::function<void()> cancelled = {}) {
    if (op != nullptr) *op = new FakeOp(std::move(cancelled));
  }
};

struct FakeProcess : sf_process {
  inline static std::atomic<int> alive{0};
  struct Stream : sf_stream {
    FakeProcess* process = nullptr;
  };
  Stream io;
  sf_stream_events events{};
  sf_process_events process_events{};
  std::function<void(std::uint64_t)> on_grant;
  std::function<void()> on_cancel;
  std::function<sf_status(sf_bytes, std::size_t*)> on_write;
  std::atomic<int> cancels{0};
  std::atomic<std::uint64_t> granted{0};

  FakeProcess() {
    ++alive;
    io.process = this;
    vtbl = process_table();
    io.vtbl = stream_table();
  }
  ~FakeProcess() { --alive; }

  void started(const char* id = "p1", std::int64_t pid = 7) {
    const sf_process_started value{sizeof(value), str(id), pid};
    process_events.on_started(process_events.ctx, &value);
  }
  void data(std::string_view bytes, std::uint32_t channel = SF_CHANNEL_STDOUT) {
    events.on_data(events.ctx, channel, 0,
                   {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }
  void exited(std::int32_t code = 0) {
    const sf_exit value{sizeof(value), SF_EXIT_EXITED, 0, code, 0, 0, 0};
    process_events.on_exit(process_events.ctx, &value);
  }
  void done(std::uint64_t delivered, std::uint64_t dropped = 0) {
    const sf_stream_end end{sizeof(end), delivered, dropped};
    events.done(events.ctx, nullptr, &end);
  }

  static FakeProcess& of(sf_stream* self) { return *static_cast<Stream*>(self)->process; }

  static const sf_process_vtbl* process_table() {
    static const sf_process_vtbl table = {
        sizeof(sf_process_vtbl),
        [](sf_process* self) noexcept -> sf_stream* {
          return &static_cast<FakeProcess*>(self)->io;
        },
        [](sf_process* self, std::int32_t, std::uint32_t, sf_completion done, sf_op** op,
           const sf_error_sink*) noexcept -> sf_status {
          (void)self;
          FakeOp::give(op);
          std::thread([done] { done.done(done.ctx, nullptr); }).detach();
          return SF_OK;
        },
        [](sf_process* self) noexcept { delete static_cast<FakeProcess*>(self); }};
    return &table;
  }
  static const sf_stream_vtbl* stream_table() {
    static const sf_stream_vtbl table = {
        sizeof(sf_stream_vtbl),
        [](sf_stream* self, std::uint64_t bytes) noexcept {
          of(self).granted += bytes;
          if (of(self).on_grant) of(self).on_grant(bytes);
        },
        [](sf_stream* self, sf_bytes data, std::uint32_t, std::size_t* accepted,
           const sf_error_sink* err) noexcept -> sf_status {
          if (!of(self).on_write) return fail(err, SF_CONFLICT, "no input");
          return of(self).on_write(data, accepted);
        },
        [](sf_stream*, const sf_error_sink*) noexcept -> sf_status { return SF_OK; },
        [](sf_stream* self) noexcept {
          ++of(self).cancels;
          if (of(self).on_cancel) of(self).on_cancel();
        },
        [](sf_stream*) noexcept {}};
    return &table;
  }
};

struct FakeSandbox : sf_sandbox {
  inline static std::atomic<int> alive{0};
  using Start = std::function<sf_status(const sf_start_request&, const sf_start_events&, sf_op**,
                                        const sf_error_sink*)>;
  using Plain = std::function<sf_status(sf_completion, sf_op**, const sf_error_sink*)>;
  using Info = std::function<sf_status(sf_info_completion, sf_op**, const sf_error_sink*)>;
  using Text = std::function<sf_status(sf_text_completion, sf_op**, const sf_error_sink*)>;
  using Spawn =
      std::function<sf_status(const sf_command&, const sf_stream_events&, const sf_process_events&,
                              sf_process**, const sf_error_sink*)>;
  Start on_start;
  Plain on_stop, on_destroy;
  Info on_info;
  Text on_instructions;
  Spawn on_spawn;
  const sf_processes_ext* processes = nullptr;
  const sf_pty_ext* pty = nullptr;
  const sf_files_ext* files = nullptr;
  const sf_snapshot_ext* snapshots = nullptr;
  sf_context* context = nullptr;
  sf_lane* lane = nullptr;

  FakeSandbox() {
    ++alive;
    vtbl = table();
  }
  ~FakeSandbox() {
    --alive;
    if (context != nullptr) context->vtbl->release(context);
    if (lane != nullptr) lane->vtbl->release(lane);
  }

  static FakeSandbox& of(sf_sandbox* self) { return *static_cast<FakeSandbox*>(self); }

  static const sf_sandbox_vtbl* table() {
    static const sf_sandbox_vtbl value = {
        sizeof(sf_sandbox_vtbl),
        [](sf_sandbox* self, const sf_start_request* request, const sf_start_events* events,
           sf_op** op, const sf_error_sink* err) noexcept -> sf_status {
          if (!of(self).on_start) return fail(err, SF_UNSUPPORTED, "no start");
          return of(self).on_start(*request, *events, op, err);
        },
        [](sf_sandbox* self, sf_completion done, sf_op** op,
           const sf_error_sink* err) noexcept -> sf_status {
          if (!of(self).on_stop) return fail(err, SF_UNSUPPORTED, "no stop");
          return of(self).on_stop(done, op, err);
        },
        [](sf_sandbox* self, sf_completion done, sf_op** op,
           const sf_error_sink* err) noexcept -> sf_status {
          if (!of(self).on_destroy) return fail(err, SF_UNSUPPORTED, "no destroy");
          return of(self).on_destroy(done, op, err);
        },
        [](sf_sandbox* self, sf_info_completion done, sf_op** op,
           const sf_error_sink* err) noexcept -> sf_status {
          if (!of(self).on_info) return fail(err, SF_UNSUPPORTED, "no info");
          return of(self).on_info(done, op, err);
        },
        [](sf_sandbox* self, sf_text_completion done, sf_op** op,
           const sf_error_sink* err) noexcept -> sf_status {
          if (!of(self).on_instructions) return fail(err, SF_UNSUPPORTED, "no instructions");
          return of(self).on_instructions(done, op, err);
        },
        [](sf_sandbox* self, const sf_command* command, const sf_stream_events* io,
           const sf_process_events* events, sf_process** process,
           const sf_error_sink* err) noexcept -> sf_status {
          if (!of(self).on_spawn) return fail(err, SF_UNSUPPORTED, "no spawn");
          return of(self).on_spawn(*command, *io, *events, process, err);
        },
        [](sf_sandbox* self, sf_str id) noexcept -> const void* {
          if (copy(id) == SF_EXT_PTY) return of(self).pty;
          if (copy(id) == SF_EXT_FILES) return of(self).files;
          if (copy(id) == SF_EXT_SNAPSHOT) return of(self).snapshots;
          return copy(id) == SF_EXT_PROCESSES ? of(self).processes : nullptr;
        },
        [](sf_sandbox* self) noexcept { delete static_cast<FakeSandbox*>(self); }};
    return &value;
  }

  // Spawns hand out `process`, which the caller drives.
  void spawn_gives(FakeProcess* process) {
    on_spawn = [process](const sf_command&, const sf_stream_events& io,
                         const sf_process_events& events, sf_process** out, const sf_error_sink*) {
      process->events = io;
      process->process_events = events;
      *out = process;
      return SF_OK;
    };
  }
};

struct FakeProvider : sf_provider {
  inline static std::atomic<int> alive{0};
  std::function<sf_status(sf_describe_completion, sf_op**, const sf_error_sink*)> on_describe;
  std::function<sf_status(const sf_create_request&, sf_sandbox**, const sf_error_sink*)> on_create;
  std::string options;

  FakeProvider() {
    ++alive;
    static const sf_provider_vtbl table = {
        sizeof(sf_provider_vtbl),
        [](sf_provider* self, sf_describe_completion done, sf_op** op,
           const sf_error_sink* err) noexcept -> sf_status {
          return static_cast<FakeProvider*>(self)->on_describe(done, op, err);
        },
        [](sf_provider* self, const sf_create_request* request, sf_sandbox** sandbox,
           const sf_error_sink* err) noexcept -> sf_status {
          return static_cast<FakeProvider*>(self)->on_create(*request, sandbox, err);
        },
        [](sf_provider*, sf_str) noexcept -> const void* { return nullptr; },
        [](sf_provider* self) noexcept { delete static_cast<FakeProvider*>(self); }};
    vtbl = &table;
  }
  ~FakeProvider() { --alive; }
};

// Host and plugin of one test. After `close` everything must have been released.
class Bench {
 public:
  // `more`: services that the manifest names besides the usual ones.
  explicit Bench(const std::vector<std::string>& more = {}) {
    services = std::make_shared<HostServices>();
    services->runtime = &runtime;
    services->logger = std::make_shared<Logger>([this](std::string_view line) {
      {
        const std::lock_guard lock(mutex_);
        log_ += line;
      }
      if (on_log) on_log();
    });
    Manifest manifest;
    manifest.name = "fake";
    manifest.version = "1";
    manifest.abi_major = 1;
    manifest.env = {"FAKE_TOKEN"};
    manifest.services = {"log", "env", "clock", "executor", "paths", "state", "secrets"};
    manifest.services.insert(manifest.services.end(), more.begin(), more.end());
    auto place = plugin::Plugin::reserve(std::move(manifest), "/nowhere/fake.so");
    plugin = place.value();
    plugin->api = api();
    plugin->host.attach(services);
    provider_lane = runtime.make_lane();
    sandbox_lane = runtime.make_lane();
    current() = this;
  }
  ~Bench() {
    current() = nullptr;
    plugin->host.attach(nullptr);
  }

  // Runs f on a lane and waits for it.
  template <class F>
  auto on(const Lane& lane, F f) -> decltype(f()) {
    using R = decltype(f());
    auto task = std::make_shared<std::packaged_task<R()>>(std::move(f));
    auto future = task->get_future();
    lane.post([task] { (*task)(); });
    if (future.wait_for(std::chrono::seconds(60)) != std::future_status::ready)
      throw std::runtime_error("the lane does not move");
    return future.get();
  }
  // Everything that was posted so far has run.
  void settle(const Lane& lane) {
    for (int i = 0; i < 4; ++i)
      on(lane, [] {});
  }

  template <class T, class Start>
  Result<T> wait(Start&& start) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    auto future = promise->get_future();
    start(Handler<T>([promise](Result<T> result) { promise->set_value(std::move(result)); }));
    if (future.wait_for(std::chrono::seconds(60)) != std::future_status::ready)
      throw std::runtime_error("no answer");
    return future.get();
  }

  Result<std::shared_ptr<ProviderBackend>> open(json::Object options = {}) {
    return wait<std::shared_ptr<ProviderBackend>>([&](auto handler) {
      plugin::open_provider(*plugin, "fake", std::move(options), provider_lane, nullptr,
                            std::move(handler));
    });
  }

  // A provider that makes the sandbox which the test then drives as `sandbox`.
  std::shared_ptr<SandboxBackend> make_sandbox(std::shared_ptr<const SessionContext> context = {}) {
    auto opened = open();
    backend = opened.value();
    provider->on_create = [this](const sf_create_request& request, sf_sandbox** out,
                                 const sf_error_sink*) {
      sandbox = new FakeSandbox;
      if (processes != nullptr) sandbox->processes = processes;
      sandbox->pty = pty;
      sandbox->files = files;
      sandbox->snapshots = snapshots;
      sandbox->lane = request.lane;
      request.lane->vtbl->retain(request.lane);
      if (request.context != nullptr) {
        sandbox->context = request.context;
        request.context->vtbl->retain(request.context);
      }
      *out = sandbox;
      return SF_OK;
    };
    return on(provider_lane,
              [&] {
                CreateRequest request;
                request.lane = sandbox_lane;
                request.context = std::move(context);
                return backend->create(std::move(request));
              })
        .value();
  }

  std::uint64_t faults(plugin::Fault fault) const { return plugin->faults.count(fault); }
  std::string log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  Runtime runtime;
  std::shared_ptr<HostServices> services;
  plugin::Plugin* plugin = nullptr;
  Lane provider_lane, sandbox_lane;
  std::shared_ptr<ProviderBackend> backend;
  FakeProvider* provider = nullptr;  // owned by the backend
  FakeSandbox* sandbox = nullptr;    // owned by its backend
  const sf_pty_ext* pty = nullptr;   // given to the sandboxes that are made from now on
  const sf_processes_ext* processes = nullptr;
  const sf_files_ext* files = nullptr;
  const sf_snapshot_ext* snapshots = nullptr;
  std::function<sf_status(const sf_open_request&, sf_provider**, const sf_error_sink*)> on_open;
  std::function<void()> on_log;  // by who logs, after the line was kept

 private:
  static Bench*& current() {
    static Bench* bench = nullptr;
    return bench;
  }

  static const sf_plugin* api() {
    static const sf_plugin table = {
        sizeof(sf_plugin), SF_ABI_MAJOR, SF_ABI_MINOR,
        [](sf_host*, const sf_error_sink*) noexcept -> sf_status { return SF_OK; },
        [](const sf_open_request* request, sf_provider** out,
           const sf_error_sink* err) noexcept -> sf_status {
          Bench& bench = *current();
          if (bench.on_open) return bench.on_open(*request, out, err);
          bench.provider = new FakeProvider;
          bench.provider->options = copy(request->options);
          *out = bench.provider;
          return SF_OK;
        }};
    return &table;
  }

  mutable std::mutex mutex_;
  std::string log_;
};

// Everything that a process told, in order.
class RecordingSink final : public ProcessSink {
 public:
  void on_started(ProcessId id, std::int64_t pid) override {
    add("started " + id.str() + " " + std::to_string(pid));
  }
  void on_data(Channel channel, Bytes data) override {
    const std::string text(reinterpret_cast<const char*>(data.data()), data.size());
    add((channel == Channel::err ? "err " : "out ") + text);
    if (hook) hook(text);
  }
  void on_writable() override { add("writable"); }
  void on_exit(const Exit& exit) override {
    add("exit " + std::string(to_string(exit.outcome)) + " " +
        (exit.code ? std::to_string(*exit.code) : "-"));
  }
  void done(std::optional<Error> error, StreamEnd end) override {
    {
      const std::lock_guard lock(mutex_);
      error_ = error;
    }
    add("done " + std::string(error ? to_string(error->code) : "OK") + " " +
        std::to_string(end.delivered) + " " + std::to_string(end.dropped));
    ended_.set_value();
  }

  std::vector<std::string> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  std::optional<Error> error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  bool wait() {
    return ended_.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  }
  std::function<void(const std::string&)> hook;  // inside on_data

 private:
  void add(std::string event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  mutable std::mutex mutex_;
  std::vector<std::string> events_;
  std::optional<Error> error_;
  std::promise<void> ended_;
};

}  // namespace sandforge::test
