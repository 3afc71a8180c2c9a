// A plugin's provider, sandboxes and processes as core's backends.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "plugin/abi_call.hpp"
#include "plugin/abi_context.hpp"
#include "plugin/abi_lane.hpp"
#include "plugin/plugin.hpp"
#include "sandforge/backend.hpp"
#include "sandforge/ext/files.h"
#include "sandforge/ext/processes.h"
#include "sandforge/ext/pty.h"
#include "sandforge/ext/snapshot.h"

namespace sandforge::plugin {

// Checks a settings or options schema before anything uses it; may be empty.
using SchemaCheck = std::function<Result<void>(const json::Value& schema)>;

// Opens a provider of the plugin on the lane; the handler comes there too.
void open_provider(Plugin& plugin, std::string name, json::Object options, Lane lane,
                   SchemaCheck check, Handler<std::shared_ptr<ProviderBackend>> done);

// The plugin's provider. Released on its lane after every sandbox of it.
struct ProviderCore {
  ProviderCore(Plugin& p, std::string n, Lane l);
  ~ProviderCore();
  ProviderCore(const ProviderCore&) = delete;
  ProviderCore& operator=(const ProviderCore&) = delete;

  Plugin& plugin;
  const std::string name;
  const Lane lane;
  const LaneRef lane_ref;
  sf_provider* raw = nullptr;  // null until it is open
};

// The plugin's sandbox. Released on its lane after its processes and operations.
struct SandboxCore {
  SandboxCore(std::shared_ptr<ProviderCore> p, Lane l);
  ~SandboxCore();
  SandboxCore(const SandboxCore&) = delete;
  SandboxCore& operator=(const SandboxCore&) = delete;

  const std::shared_ptr<ProviderCore> provider;
  Plugin& plugin;
  const Lane lane;
  const LaneRef lane_ref;
  sf_sandbox* raw = nullptr;
  const sf_processes_ext* processes = nullptr;
  const sf_pty_ext* pty = nullptr;
  const sf_files_ext* files = nullptr;
  const sf_snapshot_ext* snapshots = nullptr;
};

Result<std::shared_ptr<SandboxBackend>> create_sandbox(std::shared_ptr<ProviderCore> provider,
                                                       CreateRequest request);

std::unique_ptr<ProcessesBackend> make_processes(std::shared_ptr<SandboxCore> core);

// Starts a process: `start` calls the plugin with the events that were made for it.
using ProcessStart = std::function<Result<void>(
    const sf_stream_events& io, const sf_process_events& events, sf_process** process)>;
Result<std::shared_ptr<ProcessBackend>> start_process(std::shared_ptr<SandboxCore> core,
                                                      const char* what, std::uint64_t window,
                                                      std::shared_ptr<ProcessSink> sink,
                                                      const ProcessStart& start);

Exit read_exit(const sf_exit* exit);

// Error when the caller is not on the lane that the plugin's [lane] functions need.
Result<void> need_lane(const Lane& lane, std::string_view what);

// One operation of a provider or a sandbox: `begin` calls the plugin's [lane] function.
template <class T, class Core, class Begin>
std::shared_ptr<Pending> start_call(const std::shared_ptr<Core>& core, const char* what,
                                    Handler<T> done, Begin&& begin) {
  return run_call(std::make_shared<Call<T>>(core->plugin, core->lane, what, core, std::move(done)),
                  [&](void* ctx, sf_op** op) -> Result<void> {
                    if (auto good = need_lane(core->lane, what); !good) return good;
                    return begin(ctx, op);
                  });
}

}  // namespace sandforge::plugin
