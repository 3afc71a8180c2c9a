#include <utility>

#include <fmt/format.h>

#include "plugin/abi_backend.hpp"
#include "plugin/abi_call.hpp"
#include "plugin/members.hpp"
#include "plugin/process_events.hpp"

namespace sandforge::plugin {
namespace {

// Looks up the process of a callback and fences what the callback does.
template <class F>
void with_process(void* ctx, bool last, const char* what, F&& f) noexcept {
  const auto events =
      std::static_pointer_cast<ProcessEvents>(object_of(ctx, &ProcessEvents::kKind, last, what));
  if (!events) return;
  try {
    f(*events);
  } catch (...) {
    events->oops();
  }
}

void on_data(void* ctx, std::uint32_t channel, std::uint32_t flags, sf_bytes data) noexcept {
  with_process(ctx, false, "on_data", [&](auto& events) { events.data(channel, flags, data); });
}
void on_writable(void* ctx) noexcept {
  with_process(ctx, false, "on_writable", [](auto& events) { events.writable(); });
}
void on_done(void* ctx, const sf_error* error, const sf_stream_end* end) noexcept {
  with_process(ctx, true, "process.done", [&](auto& events) { events.done(error, end); });
}
void on_started(void* ctx, const sf_process_started* started) noexcept {
  with_process(ctx, false, "on_started", [&](auto& events) { events.started(started); });
}
void on_exit(void* ctx, const sf_exit* exit) noexcept {
  with_process(ctx, false, "on_exit", [&](auto& events) { events.exited(exit); });
}

class AbiProcess final : public ProcessBackend {
 public:
  AbiProcess(std::shared_ptr<ProcessHandle> handle, std::shared_ptr<ProcessEvents> events)
      : handle_(std::move(handle)), events_(std::move(events)) {}

  void grant(std::uint64_t bytes) noexcept override {
    events_->add_credit(bytes);
    const ProcessEvents::Inside inside(*events_);
    call_value(plugin(), "stream.grant", stream()->vtbl->grant, stream(), bytes);
  }

  Result<std::size_t> write(Bytes data) override {
    if (auto good = need_lane(lane(), "stream.write"); !good) return std::move(good).error();
    std::size_t accepted = 0;
    const sf_bytes bytes{reinterpret_cast<const std::uint8_t*>(data.data()), data.size()};
    const ProcessEvents::Inside inside(*events_);
    auto written = call_status(plugin(), "stream.write", stream()->vtbl->write, stream(), bytes,
                               std::uint32_t{0}, &accepted);
    if (!written) return std::move(written).error();
    if (accepted <= data.size()) return accepted;
    plugin().faults.report(Fault::bad_value, "write accepted more than it was given");
    return crashed(plugin(), "write accepted more than it was given");
  }

  Result<void> shutdown_write() override {
    if (auto good = need_lane(lane(), "stream.shutdown_write"); !good) return good;
    const ProcessEvents::Inside inside(*events_);
    return call_status(plugin(), "stream.shutdown_write", stream()->vtbl->shutdown_write, stream());
  }

  void cancel() noexcept override {
    const ProcessEvents::Inside inside(*events_);
    handle_->cancel();
  }

  void signal(int signal, bool tree, Handler<void> done) override {
    start("process.signal", std::move(done), [&](void* ctx, sf_op** op) {
      return call_status(plugin(), "process.signal", process()->vtbl->signal, process(),
                         std::int32_t{signal}, tree ? SF_SIGNAL_TREE : SF_SIGNAL_LEADER,
                         sf_completion{ctx, &done_void}, op);
    });
  }

  void resize(std::uint32_t cols, std::uint32_t rows, Handler<void> done) override {
    start("pty.resize", std::move(done), [&](void* ctx, sf_op** op) -> Result<void> {
      const sf_pty_ext* pty = handle_->core().pty;
      if (pty == nullptr)
        return Error(Status::unsupported, "this provider has no terminals", "feature.pty");
      return call_status(plugin(), "pty.resize", pty->resize, process(), cols, rows,
                         sf_completion{ctx, &done_void}, op);
    });
  }

 private:
  Plugin& plugin() const noexcept { return handle_->core().plugin; }
  const Lane& lane() const noexcept { return handle_->core().lane; }
  sf_stream* stream() const noexcept { return handle_->stream(); }
  sf_process* process() const noexcept { return handle_->process(); }

  template <class Start>
  void start(const char* what, Handler<void> done, Start&& begin) {
    auto call = std::make_shared<Call<void>>(plugin(), lane(), what, handle_, std::move(done));
    run_call(std::move(call), [&](void* ctx, sf_op** op) -> Result<void> {
      if (auto good = need_lane(lane(), what); !good) return good;
      const ProcessEvents::Inside inside(*events_);
      return begin(ctx, op);
    });
  }

  const std::shared_ptr<ProcessHandle> handle_;
  const std::shared_ptr<ProcessEvents> events_;
};

}  // namespace

Exit read_exit(const sf_exit* exit) {
  Exit out;
  if (exit == nullptr || !SF_HAS(exit, signal)) return out;
  switch (exit->outcome) {
    case SF_EXIT_EXITED:
      out.outcome = Outcome::exited;
      out.code = exit->code;
      break;
    case SF_EXIT_SIGNALED:
      out.outcome = Outcome::signaled;
      break;
    case SF_EXIT_TIMED_OUT:
      out.outcome = Outcome::timed_out;
      if (exit->signal == 0) out.code = exit->code;
      break;
    case SF_EXIT_CANCELLED:
      out.outcome = Outcome::cancelled;
      break;
    case SF_EXIT_OUT_OF_MEMORY:
      out.outcome = Outcome::out_of_memory;
      break;
    default:
      break;
  }
  out.signal = exit->signal;
  out.pipes_held = (exit->flags & SF_EXIT_PIPES_HELD) != 0;
  out.killed = (exit->flags & SF_EXIT_KILLED) != 0;
  return out;
}

Result<std::shared_ptr<ProcessBackend>> start_process(std::shared_ptr<SandboxCore> core,
                                                      const char* what, std::uint64_t window,
                                                      std::shared_ptr<ProcessSink> sink,
                                                      const ProcessStart& start) {
  Plugin& plugin = core->plugin;
  auto events = std::make_shared<ProcessEvents>(core, window, std::move(sink));
  void* ctx = plugin.tokens.add(events, &ProcessEvents::kKind);
  if (ctx == nullptr)
    return Error(Status::unavailable, "too many operations of one plugin are running");
  const sf_stream_events io{sizeof(io), ctx, &on_data, &on_writable, &on_done};
  const sf_process_events more{sizeof(more), ctx, &on_started, &on_exit};

  const auto refuse_start = [&](Error error) {
    events->start_returned(false);
    plugin.tokens.drop(ctx);
    return error;
  };
  sf_process* process = nullptr;
  auto outcome = start(io, more, &process);
  if (!outcome) {
    Error error = refuse_start(std::move(outcome).error());
    return error;
  }
  sf_stream* stream = nullptr;
  const char* missing = missing_member(process);
  if (missing == nullptr) {
    stream = call_value(plugin, "process.stream", process->vtbl->stream, process);
    missing = missing_member(stream);
  }
  if (missing != nullptr) {
    plugin.faults.report(Fault::missing_value, fmt::format("{}: process: {}", what, missing));
    if (process != nullptr && process->vtbl != nullptr && SF_HAS_FN(process->vtbl, release))
      call_value(plugin, "process.release", process->vtbl->release, process);
    Error error = refuse_start(
        crashed(plugin, fmt::format("the process lacks {}", missing), "missing_member"));
    error.may_have_started = true;
    return error;
  }
  auto handle = std::make_shared<ProcessHandle>(std::move(core), process, stream);
  events->set_handle(handle);
  events->start_returned(true);
  return std::shared_ptr<ProcessBackend>(
      std::make_shared<AbiProcess>(std::move(handle), std::move(events)));
}

}  // namespace sandforge::plugin
