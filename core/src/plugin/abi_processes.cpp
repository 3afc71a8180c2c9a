// The processes extension.
#include <utility>

#include <fmt/format.h>

#include "plugin/abi_backend.hpp"
#include "plugin/abi_call.hpp"
#include "plugin/read_list.hpp"

namespace sandforge::plugin {
namespace {

constexpr std::size_t kMaxProcesses = 100'000;

ProcessInfo read_process(const sf_process_info& raw) {
  ProcessInfo out;
  out.id = ProcessId(copy_text(raw.id, 4096));
  out.pid = raw.pid;
  out.command = std::string(view(raw.command).substr(0, 65536));
  out.tag = copy_text(raw.tag, 4096);
  out.running = raw.running != 0;
  out.detached = (raw.flags & SF_PROCESS_DETACHED) != 0;
  out.stray = (raw.flags & SF_PROCESS_STRAY) != 0;
  if (raw.exit != nullptr) out.exit = read_exit(raw.exit);
  if (SF_HAS(&raw, next)) {
    out.first = OutputCursor{raw.first.out, raw.first.err};
    out.next = OutputCursor{raw.next.out, raw.next.err};
  }
  return out;
}

Result<std::vector<ProcessInfo>> read_processes(Plugin& plugin, const sf_process_info* first,
                                                std::size_t count, std::size_t stride) {
  return read_list(
      plugin, "processes", first, count, stride, kMaxProcesses,
      [](const sf_process_info* item) { return SF_HAS(item, exit); }, read_process);
}

void done_list(void* ctx, const sf_error* error, const sf_process_info* first, std::size_t count,
               std::size_t stride) noexcept {
  complete<std::vector<ProcessInfo>>(ctx, error, "processes.list.done", [=](Plugin& plugin) {
    return read_processes(plugin, first, count, stride);
  });
}

class AbiProcesses final : public ProcessesBackend {
 public:
  explicit AbiProcesses(std::shared_ptr<SandboxCore> core) : core_(std::move(core)) {}

  void list(Handler<std::vector<ProcessInfo>> done) override {
    start_call<std::vector<ProcessInfo>>(
        core_, "processes.list", std::move(done), [&](void* ctx, sf_op** op) {
          return call_status(core_->plugin, "processes.list", core_->processes->list, core_->raw,
                             sf_process_list_completion{ctx, &done_list}, op);
        });
  }

  Result<std::shared_ptr<ProcessBackend>> attach(const ProcessId& id, OutputCursor from,
                                                 std::uint64_t window,
                                                 std::shared_ptr<ProcessSink> sink) override {
    if (auto good = need_lane(core_->lane, "processes.attach"); !good)
      return std::move(good).error();
    return start_process(
        core_, "processes.attach", window, std::move(sink),
        [&](const sf_stream_events& io, const sf_process_events& events, sf_process** process) {
          return call_status(core_->plugin, "processes.attach", core_->processes->attach,
                             core_->raw, to_str(id.str()), sf_cursor{from.out, from.err}, window,
                             &io, &events, process);
        });
  }

  void signal(const ProcessId& id, int signal, bool tree, Handler<void> done) override {
    start_call<void>(core_, "processes.signal", std::move(done), [&](void* ctx, sf_op** op) {
      return call_status(core_->plugin, "processes.signal", core_->processes->signal, core_->raw,
                         to_str(id.str()), std::int32_t{signal},
                         tree ? SF_SIGNAL_TREE : SF_SIGNAL_LEADER, sf_completion{ctx, &done_void},
                         op);
    });
  }

  void forget(const ProcessId& id, Handler<void> done) override {
    start_call<void>(core_, "processes.forget", std::move(done), [&](void* ctx, sf_op** op) {
      return call_status(core_->plugin, "processes.forget", core_->processes->forget, core_->raw,
                         to_str(id.str()), sf_completion{ctx, &done_void}, op);
    });
  }

 private:
  const std::shared_ptr<SandboxCore> core_;
};

}  // namespace

std::unique_ptr<ProcessesBackend> make_processes(std::shared_ptr<SandboxCore> core) {
  return std::make_unique<AbiProcesses>(std::move(core));
}

}  // namespace sandforge::plugin
