// A plugin whose code runs in a process of its own: the same C structs as one in line, over the
// process that lives now. A lost one is replaced at the next call, within a budget.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "plugin/inspect.hpp"
#include "runner/host_peer.hpp"
#include "runner/quarantine.hpp"
#include "sandforge/plugin_loader.hpp"
#include "sandforge/runner.hpp"

namespace sandforge::runner {

// Never destroyed, like its plugin.
class RemotePlugin {
 public:
  static constexpr std::size_t kRestarts = 3;
  static constexpr std::chrono::minutes kRestartWindow{5};

  struct Setup {
    PluginFile file;
    PluginPolicy policy;
    std::filesystem::path program;
    std::chrono::milliseconds ready_limit{};
    std::chrono::milliseconds call_limit{};
    std::shared_ptr<const HostServices> services;
    std::shared_ptr<Quarantine> quarantine;
    std::string sha256;  // of the file: what is quarantined
    plugin::FileIdentity identity;
  };

  RemotePlugin(plugin::Plugin& plugin, Setup setup);
  RemotePlugin(const RemotePlugin&) = delete;
  RemotePlugin& operator=(const RemotePlugin&) = delete;

  // The table that stands for the plugin's own; finds its RemotePlugin by the lane of a request.
  static const sf_plugin* table() noexcept;
  static RemotePlugin* of(plugin::Plugin& plugin) noexcept { return plugin.remote; }

  plugin::Plugin& plugin() const noexcept { return plugin_; }
  // Of pinned ones the bytes are the same, whichever file they came from.
  bool is(const plugin::FileIdentity& identity, const std::string& pin) const noexcept {
    return setup_.file.sha256 == pin && (!pin.empty() || setup_.identity == identity);
  }
  // A file that is written anew may keep its identity.
  bool has_content(const std::string& sha256) const noexcept { return setup_.sha256 == sha256; }
  // The first process, also another try of it. Blocks.
  void start(LoadAttempt& attempt);
  // The process that lives now; starts another one when it was lost.
  Result<std::shared_ptr<HostPeer>> live();
  // Runs what waits for the process, or for others that do. Their lanes wait, and no other lane.
  void waiting(const std::function<void()>& work) const;
  template <class Mutex>
  std::unique_lock<Mutex> lock(Mutex& mutex) const {
    std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock) waiting([&] { lock.lock(); });
    return lock;
  }
  // Ends it for good. Blocks.
  void stop();

 private:
  std::shared_ptr<HostPeer> launch(LoadAttempt& attempt, bool& host_failed);
  Error over_budget(const Error& last);

  plugin::Plugin& plugin_;
  const Setup setup_;
  std::mutex mutex_;
  std::shared_ptr<HostPeer> peer_;
  std::deque<std::uint64_t> restarts_;  // when, monotonic nanoseconds; not those the host failed at
  std::optional<Error> failed_;         // why the last one gave no process that could be used
  std::optional<Error> refused_;        // quarantined, or closed
};

// Opens a provider in the process; the proxy behind it opens it again in a later one.
Result<sf_provider*> open_remote(RemotePlugin& plugin, const sf_open_request& request);

}  // namespace sandforge::runner
