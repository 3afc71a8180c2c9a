// What a host gives its plugins. Each part may be absent: the plugin then finds no such service.
// Source: sandforge/ext/host_*.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sandforge/clock.hpp"
#include "sandforge/context.hpp"
#include "sandforge/handler.hpp"
#include "sandforge/log.hpp"
#include "sandforge/runtime.hpp"
#include "sandforge/secrets.hpp"

namespace sandforge {

// Small durable values of plugins. Thread rule: [any]; handlers from any thread, once.
class StateStore {
 public:
  virtual ~StateStore() = default;
  // `session` is empty for the plugin's own values. No value: no such key.
  virtual void get(const std::string& plugin, const SessionId& session, std::string key,
                   Handler<std::optional<std::string>> done) = 0;
  // No value removes the key.
  virtual void set(const std::string& plugin, const SessionId& session, std::string key,
                   std::optional<std::string> value, Handler<void> done) = 0;
};

// Kept as long as the process; at most `limit_bytes` of keys and values, with 256 bytes for each of
// them, and of one plugin a quarter of that.
std::shared_ptr<StateStore> memory_state_store(std::uint64_t limit_bytes = 64U << 20);
// One file for each value below this folder, which is made with the first one, mode 0700. Shared by
// processes: a value is replaced as a whole, and the last one counts. Of one plugin at most
// `limit_bytes`, with 256 bytes for each value. Writes wait for the disk.
std::shared_ptr<StateStore> folder_state_store(std::filesystem::path folder,
                                               std::uint64_t limit_bytes = 16U << 20);

// Folders below which each plugin gets its own, mode 0700, made when it asks. Empty: none.
struct PluginFolders {
  std::filesystem::path data;
  std::filesystem::path cache;
  std::filesystem::path runtime;  // for sockets: a short path
};

struct HostServices {
  // Must outlive every registry that was made with it. What plugins ask of the services after its
  // end is refused as unavailable. Null: no executor, process, secrets and state services.
  Runtime* runtime = nullptr;
  std::shared_ptr<Logger> logger;  // null: records go nowhere
  std::shared_ptr<const Clock> clock = system_clock();
  // A variable of the host's environment; asked only for names that the manifest declares.
  std::function<std::optional<std::string>(const std::string&)> env = environment_variable;
  std::shared_ptr<SecretSource> secrets;
  std::shared_ptr<StateStore> state;
  PluginFolders folders;
  // sandforge-guest, through which the `process` service runs commands; one of each plugin that
  // uses it runs, from the first command until the Runtime ends. Empty: no such service.
  std::filesystem::path guest_program;
  // A table of sandforge/ext/host_*.h to offer in place of ours, by the service's id; null for
  // those that stay. Only of services that the manifest names. Absent: all stay.
  std::function<const void*(std::string_view id)> instead;
  // Told of the rules that plugins break, in place of the log: the kind, and how many of it there
  // were. Not of each one of many. Absent: the log is told.
  std::function<void(std::uint8_t kind, std::string_view what, std::uint64_t count)> on_fault;

  static std::optional<std::string> environment_variable(const std::string& name);
};

}  // namespace sandforge
