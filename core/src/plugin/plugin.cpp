#include "plugin/plugin.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

namespace sandforge::plugin {
namespace {

// Leaked on purpose, like the plugins in it.
std::array<std::atomic<Plugin*>, kMaxPlugins + 1>& table() {
  static auto* plugins = new std::array<std::atomic<Plugin*>, kMaxPlugins + 1>{};
  return *plugins;
}

}  // namespace

Plugin::Plugin(std::uint32_t i, Manifest m, std::filesystem::path f)
    : index(i),
      manifest(std::move(m)),
      file(std::move(f)),
      faults(manifest.name),
      tokens(i),
      host(*this) {}

Result<Plugin*> Plugin::reserve(Manifest manifest, std::filesystem::path file) {
  static std::mutex mutex;
  static std::uint32_t next = 1;
  const std::lock_guard lock(mutex);
  if (next > kMaxPlugins)
    return Error(Status::unavailable, "this process has loaded as many plugins as it can",
                 "plugin.too_many");
  auto* plugin = new Plugin(next, std::move(manifest), std::move(file));
  table()[next].store(plugin);
  ++next;
  return plugin;
}

Plugin* Plugin::at(std::uint32_t index) noexcept {
  return index <= kMaxPlugins ? table()[index].load() : nullptr;
}

const char* missing_member(const sf_plugin* api) noexcept {
  if (!SF_HAS(api, abi_minor)) return "abi_minor";
  if (!SF_HAS_FN(api, init)) return "init";
  if (!SF_HAS_FN(api, open)) return "open";
  return nullptr;
}

std::shared_ptr<void> object_of(void* ctx, const void* kind, bool last, const char* what) noexcept {
  Plugin* plugin = Plugin::at(Tokens::plugin_of(ctx));
  // Nobody to blame: the value was never one of ours.
  if (plugin == nullptr) return nullptr;
  std::shared_ptr<void> object;
  switch (plugin->tokens.find(ctx, kind, last, object)) {
    case Tokens::Lookup::found:
      return object;
    case Tokens::Lookup::absent:
      plugin->faults.report(Fault::late_callback, what);
      break;
    case Tokens::Lookup::wrong_kind:
      plugin->faults.report(Fault::wrong_ctx, what);
      break;
  }
  return nullptr;
}

}  // namespace sandforge::plugin
