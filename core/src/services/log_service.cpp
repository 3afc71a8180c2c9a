#include <algorithm>
#include <vector>

#include "log/lost.hpp"
#include "plugin/abi_text.hpp"
#include "plugin/plugin.hpp"
#include "sandforge/ext/host_log.h"
#include "services/plugin_host.hpp"

namespace sandforge::services {
namespace {

constexpr std::size_t kMaxFields = 32;

LogLevel to_level(std::uint32_t raw) {
  if (raw <= SF_LOG_DEBUG) return LogLevel::debug;
  return raw >= SF_LOG_ERROR ? LogLevel::error : static_cast<LogLevel>(raw);
}

void write(sf_host* self, std::uint32_t level, sf_str message, const sf_log_field* first,
           std::size_t count, std::size_t stride) noexcept {
  PluginHost& host = PluginHost::of(self);
  const auto services = host.services();
  if (!services || !services->logger || !services->logger->enabled(to_level(level))) return;
  try {
    const auto& clock = services->clock ? services->clock : system_clock();
    const auto lost = host.log_bucket().take(clock->monotonic_ns());
    if (!lost) return;
    if (*lost > 0)
      services->logger->write(std::max(LogLevel::warn, to_level(level)), lost_records(*lost),
                              {{"plugin", host.plugin().name()}});
    std::vector<LogField> fields;
    fields.emplace_back("plugin", host.plugin().name());
    const bool readable = first != nullptr && stride >= sizeof(sf_log_field);
    if (count > 0 && !readable)
      host.plugin().faults.report(plugin::Fault::bad_value, "the fields of a log record");
    for (std::size_t i = 0; readable && i < count && i < kMaxFields; ++i) {
      const auto* field =
          reinterpret_cast<const sf_log_field*>(reinterpret_cast<const char*>(first) + i * stride);
      if (!SF_HAS(field, flags)) continue;
      fields.emplace_back(plugin::view(field->name), plugin::view(field->value),
                          (field->flags & SF_FIELD_SECRET) != 0);
    }
    services->logger->write(to_level(level), plugin::view(message), fields);
  } catch (...) {
    host.plugin().faults.report(plugin::Fault::bad_value, "a log record was lost: no memory");
  }
}

std::uint32_t level(sf_host* self) noexcept {
  const auto services = PluginHost::of(self).services();
  // Nothing is kept: a level above every level.
  if (!services || !services->logger) return SF_LOG_ERROR + 1;
  return static_cast<std::uint32_t>(services->logger->level());
}

}  // namespace

const void* log_service() noexcept {
  static const sf_log_service table = {sizeof(sf_log_service), &write, &level};
  return &table;
}

}  // namespace sandforge::services
