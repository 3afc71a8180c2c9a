#include "services/plugin_host.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "plugin/abi_text.hpp"
#include "plugin/names.hpp"
#include "plugin/plugin.hpp"
#include "sandforge/ext/host_clock.h"
#include "sandforge/ext/host_env.h"
#include "sandforge/ext/host_executor.h"
#include "sandforge/ext/host_http.h"
#include "sandforge/ext/host_log.h"
#include "sandforge/ext/host_paths.h"
#include "sandforge/ext/host_process.h"
#include "sandforge/ext/host_secrets.h"
#include "sandforge/ext/host_state.h"
#include "services/guest_helper.hpp"

namespace sandforge::services {
namespace {

struct Service {
  std::string_view id;
  std::string_view name;  // as manifests have it
  const void* (*vtable)() noexcept;
  bool (*offered)(const HostServices&);
};

bool always(const HostServices&) {
  return true;
}
bool with_runtime(const HostServices& services) {
  return services.runtime != nullptr;
}
bool with_state(const HostServices& services) {
  return services.runtime != nullptr && services.state != nullptr;
}
bool with_secrets(const HostServices& services) {
  return services.runtime != nullptr && services.secrets != nullptr;
}
bool with_guest(const HostServices& services) {
  return services.runtime != nullptr && !services.guest_program.empty();
}

constexpr std::array<Service, 9> kServices = {{
    {SF_SERVICE_LOG, "log", log_service, always},
    {SF_SERVICE_ENV, "env", env_service, always},
    {SF_SERVICE_CLOCK, "clock", clock_service, always},
    {SF_SERVICE_PATHS, "paths", paths_service, always},
    {SF_SERVICE_EXECUTOR, "executor", executor_service, with_runtime},
    {SF_SERVICE_STATE, "state", state_service, with_state},
    {SF_SERVICE_SECRETS, "secrets", secrets_service, with_secrets},
    {SF_SERVICE_PROCESS, "process", process_service, with_guest},
    {SF_SERVICE_HTTP, "http", http_service, with_runtime},
}};
constexpr bool are_those_of_manifests() {
  for (std::size_t i = 0; i < kServices.size(); ++i)
    if (std::string_view(kServices[i].name) != plugin::kServiceNames[i]) return false;
  return kServices.size() == plugin::kServiceNames.size();
}
static_assert(are_those_of_manifests());

}  // namespace

bool is_offered(std::string_view name, const HostServices& services) {
  return std::any_of(kServices.begin(), kServices.end(), [&](const Service& service) {
    if (service.name != name) return false;
    return service.offered(services) ||
           (services.instead && services.instead(service.id) != nullptr);
  });
}

PluginHost::PluginHost(plugin::Plugin& plugin) noexcept : plugin_(plugin) {
  static const sf_host_vtbl table = {sizeof(sf_host_vtbl), SF_ABI_MAJOR, SF_ABI_MINOR,
                                     &PluginHost::service};
  vtbl = &table;
}

PluginHost::~PluginHost() = default;

void PluginHost::attach(std::shared_ptr<const HostServices> services) {
  if (services) {
    plugin_.faults.tell(services->logger, services->on_fault);
  } else {
    plugin_.faults.tell(nullptr);
  }
  if (services == this->services()) return;
  replace(std::move(services));
}

void PluginHost::detach(const std::shared_ptr<const HostServices>& services) {
  if (services == this->services()) replace(nullptr);
}

// What the plugin started with the former ones goes on.
void PluginHost::replace(std::shared_ptr<const HostServices> services) {
  std::shared_ptr<GuestHelper> former;
  decltype(groups_) groups;
  {
    const std::lock_guard lock(mutex_);
    services_ = std::move(services);
    runtime_ = services_ && services_->runtime != nullptr ? services_->runtime->handle() : nullptr;
    former = std::exchange(helper_, nullptr);
    groups.swap(groups_);
  }
  if (former) former->retire();
  for (const auto& [name, helper] : groups)
    if (helper) helper->retire();
}

std::shared_ptr<Runtime> PluginHost::runtime() const {
  const std::lock_guard lock(mutex_);
  return runtime_ && !runtime_->ended() ? runtime_ : nullptr;
}

// With the mutex.
bool PluginHost::use(std::shared_ptr<GuestHelper>& helper) {
  if (!runtime_ || runtime_->ended() || services_->guest_program.empty()) return false;
  if (!helper || !helper->usable()) helper = GuestHelper::make(runtime_, services_->guest_program);
  return true;
}

std::shared_ptr<GuestHelper> PluginHost::guest_helper() {
  const std::lock_guard lock(mutex_);
  return use(helper_) ? helper_ : nullptr;
}

void PluginHost::open_group(std::string name) {
  const std::lock_guard lock(mutex_);
  groups_.try_emplace(std::move(name));
}

std::shared_ptr<GuestHelper> PluginHost::helper_of_group(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto group = groups_.find(name);
  return group != groups_.end() && use(group->second) ? group->second : nullptr;
}

std::shared_ptr<GuestHelper> PluginHost::close_group(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto group = groups_.find(name);
  if (group == groups_.end()) return nullptr;
  auto helper = std::move(group->second);
  groups_.erase(group);
  return helper;
}

std::shared_ptr<const HostServices> PluginHost::services() const {
  const std::lock_guard lock(mutex_);
  return services_;
}

bool PluginHost::manifest_names_variable(std::string_view name) const noexcept {
  const auto& list = plugin_.manifest.env;
  if (std::find(list.begin(), list.end(), name) != list.end()) return true;
  plugin_.faults.report(plugin::Fault::unlisted_variable, name);
  return false;
}

const void* PluginHost::service(sf_host* self, sf_str id) noexcept {
  const PluginHost& host = of(self);
  const auto services = host.services();
  if (!services) return nullptr;
  for (const Service& service : kServices) {
    if (service.id != plugin::view(id)) continue;
    // To ask for a service is no mistake: every one of them may be absent.
    const auto& named = host.plugin().manifest.services;
    if (std::find(named.begin(), named.end(), service.name) == named.end()) return nullptr;
    if (services->instead) {
      if (const void* table = services->instead(service.id)) return table;
    }
    return service.offered(*services) ? service.vtable() : nullptr;
  }
  return nullptr;
}

}  // namespace sandforge::services
