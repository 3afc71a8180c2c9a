// The services that only look something up: env, clock, paths.
#include <cstdlib>

#include "plugin/abi_text.hpp"
#include "plugin/plugin.hpp"
#include "sandforge/ext/host_clock.h"
#include "sandforge/ext/host_env.h"
#include "sandforge/ext/host_paths.h"
#include "services/plugin_host.hpp"

namespace sandforge {

std::optional<std::string> HostServices::environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

namespace services {
namespace {

sf_status env_get(sf_host* self, sf_str name, const sf_text_sink* value) noexcept {
  const PluginHost& host = PluginHost::of(self);
  if (!host.manifest_names_variable(plugin::view(name))) return SF_FORBIDDEN;
  const auto services = host.services();
  if (!services || !services->env) return SF_NOT_FOUND;
  try {
    const auto found = services->env(std::string(plugin::view(name)));
    if (!found) return SF_NOT_FOUND;
    if (value != nullptr && value->append != nullptr && !found->empty())
      value->append(value->ctx, plugin::to_str(*found));
    return SF_OK;
  } catch (...) {
    return SF_INTERNAL;
  }
}

std::shared_ptr<const Clock> clock_of(sf_host* self) noexcept {
  const auto services = PluginHost::of(self).services();
  return services && services->clock ? services->clock : system_clock();
}

int64_t clock_now(sf_host* self) noexcept {
  return clock_of(self)->now_ns();
}

uint64_t clock_monotonic(sf_host* self) noexcept {
  return clock_of(self)->monotonic_ns();
}

sf_bytes paths_get(sf_host* self, uint32_t kind) noexcept {
  PluginHost& host = PluginHost::of(self);
  try {
    const std::string* path = host.folder(kind);
    return path == nullptr ? sf_bytes{nullptr, 0} : plugin::to_bytes(*path);
  } catch (...) {
    return {nullptr, 0};
  }
}

}  // namespace

const void* env_service() noexcept {
  static const sf_env_service table = {sizeof(sf_env_service), &env_get};
  return &table;
}

const void* clock_service() noexcept {
  static const sf_clock_service table = {sizeof(sf_clock_service), &clock_now, &clock_monotonic};
  return &table;
}

const void* paths_service() noexcept {
  static const sf_paths_service table = {sizeof(sf_paths_service), &paths_get};
  return &table;
}

}  // namespace services
}  // namespace sandforge
