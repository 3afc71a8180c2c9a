// The host as one plugin sees it: the services that its manifest names and the host has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "sandforge/abi.h"
#include "sandforge/host_services.hpp"
#include "sandforge/runtime.hpp"
#include "services/log_bucket.hpp"

namespace sandforge::plugin {
class Plugin;
}

namespace sandforge::services {

class GuestHelper;

// Lives as long as the process. What stands behind it is attached by the registry that opens the
// plugin, and detached when that goes: services then answer SF_UNAVAILABLE.
class PluginHost : public sf_host {
 public:
  explicit PluginHost(plugin::Plugin& plugin) noexcept;
  ~PluginHost();
  PluginHost(const PluginHost&) = delete;
  PluginHost& operator=(const PluginHost&) = delete;

  void attach(std::shared_ptr<const HostServices> services);
  // Only when these are the attached ones.
  void detach(const std::shared_ptr<const HostServices>& services);

  plugin::Plugin& plugin() const noexcept { return plugin_; }
  std::shared_ptr<const HostServices> services() const;
  // That of the services; null when there is none, or it has ended.
  std::shared_ptr<Runtime> runtime() const;
  // Through which the plugin's commands run; made when it is first asked for, and anew after it was
  // lost. Null when there is no runtime or no program for it.
  std::shared_ptr<GuestHelper> guest_helper();
  // Groups of commands: each has a helper of its own, so that it ends with all that it ran.
  void open_group(std::string name);
  // Null also when no such group is open.
  std::shared_ptr<GuestHelper> helper_of_group(std::string_view name);
  // Null when it has ended already, or nothing was run in it.
  std::shared_ptr<GuestHelper> close_group(std::string_view name);
  // Reports a use that the manifest does not allow.
  bool manifest_names_variable(std::string_view name) const noexcept;

  // SF_PATH_*: the path of a folder that exists, made when it is first asked for; lives for ever.
  // Null when the host gives none of that kind, or it could not be made, which is logged.
  const std::string* folder(std::uint32_t kind);

  LogBucket& log_bucket() noexcept { return log_bucket_; }

  static PluginHost& of(sf_host* host) noexcept { return *static_cast<PluginHost*>(host); }

 private:
  static const void* service(sf_host* self, sf_str id) noexcept;
  void replace(std::shared_ptr<const HostServices> services);
  bool use(std::shared_ptr<GuestHelper>& helper);

  plugin::Plugin& plugin_;
  mutable std::mutex mutex_;
  std::shared_ptr<const HostServices> services_;
  std::shared_ptr<Runtime> runtime_;  // a handle: the services may outlive the Runtime itself
  std::shared_ptr<GuestHelper> helper_;
  std::map<std::string, std::shared_ptr<GuestHelper>, std::less<>> groups_;  // null: not used yet
  // Every path that was given out; never shrinks, as plugins keep pointers into it.
  std::set<std::string> folders_;
  LogBucket log_bucket_;
};

// Why a folder is not its owner's alone; empty: it is, or there is none yet. [any]
std::string why_not_private(const std::filesystem::path& path, uid_t owner);
// Logs that a plugin does without a folder. [any]
void tell_folder(const HostServices& services, std::string_view plugin,
                 const std::filesystem::path& path, std::string_view why);

// Whether this host has set it up, or has something in its place. [any]
bool is_offered(std::string_view name, const HostServices& services);

// The vtables, one per file of this folder. [any]
const void* log_service() noexcept;
const void* env_service() noexcept;
const void* clock_service() noexcept;
const void* paths_service() noexcept;
const void* executor_service() noexcept;
const void* state_service() noexcept;
const void* secrets_service() noexcept;
const void* process_service() noexcept;
const void* http_service() noexcept;

}  // namespace sandforge::services
