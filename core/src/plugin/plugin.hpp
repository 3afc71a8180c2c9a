// A loaded plugin. Never unloaded and never destroyed: its code may be on some stack for ever.
#pragma once

#include <cstdint>
#include <filesystem>

#include "plugin/faults.hpp"
#include "plugin/tokens.hpp"
#include "sandforge/abi.h"
#include "sandforge/error.hpp"
#include "sandforge/manifest.hpp"
#include "services/plugin_host.hpp"

namespace sandforge::runner {
class RemotePlugin;
}

namespace sandforge::plugin {

class Plugin {
 public:
  // A new place for a plugin whose code is not running yet; unavailable beyond kMaxPlugins.
  static Result<Plugin*> reserve(Manifest manifest, std::filesystem::path file);
  // Null for an index that was never given out.
  static Plugin* at(std::uint32_t index) noexcept;

  const std::string& name() const noexcept { return manifest.name; }

  const std::uint32_t index;
  const Manifest manifest;
  const std::filesystem::path file;
  const sf_plugin* api = nullptr;          // set once it is checked; null: not usable
  runner::RemotePlugin* remote = nullptr;  // set where it runs in a process of its own
  Faults faults;
  Tokens tokens;
  services::PluginHost host;

 private:
  Plugin(std::uint32_t index, Manifest manifest, std::filesystem::path file);
};

// The first member that the plugin's table must have and has not; null: all are there.
const char* missing_member(const sf_plugin* api) noexcept;

// Looks up the object behind a callback's ctx. Null after a fault, which is reported to the plugin
// that the ctx belongs to. `last`: the callback is the last one.
std::shared_ptr<void> object_of(void* ctx, const void* kind, bool last, const char* what) noexcept;

}  // namespace sandforge::plugin
