// Where plugins are looked for. Files that are pinned come before the folder that they lie in, so
// that their unpinned reading is too late.
#include "app.hpp"

namespace sandforge::cli {
namespace {

namespace fs = std::filesystem;

// The pins of a configuration, and which of them held for a file.
class Pins {
 public:
  explicit Pins(const ConfigPtr& configuration) {
    if (configuration) pins_ = configuration->plugins.pins;
  }

  // The SHA-256 that this file must have; empty: any.
  std::string of(const fs::path& file) {
    for (const auto& key : {file.native(), file.filename().native()})
      if (const auto found = pins_.find(key); found != pins_.end()) {
        used_.insert(key);
        return found->second;
      }
    return {};
  }

  std::vector<fs::path> files_in(const fs::path& folder) const {
    std::vector<fs::path> out;
    for (const auto& [name, sha256] : pins_) {
      const fs::path file = name.find('/') == std::string::npos ? folder / name : fs::path(name);
      std::error_code ignored;  // what cannot be looked at is reported by the scan
      if (file.parent_path() == folder && fs::exists(file, ignored)) out.push_back(file);
    }
    return out;
  }

  // A pin with a mistake in its name would leave the plugin unpinned, and nobody would know.
  void refuse_unused() const {
    for (const auto& [name, sha256] : pins_) {
      if (used_.count(name) != 0) continue;
      Error error(Status::invalid, "the pin '" + name + "' fits no plugin file that was found",
                  "config.unused_pin");
      error.details.set("pin", name);
      throw_error(std::move(error));
    }
  }

 private:
  std::map<std::string, std::string> pins_;
  std::set<std::string> used_;
};

fs::path without_trailing_slash(const fs::path& path) {
  const auto normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

}  // namespace

PluginSearchPath App::search_path(const ConfigPtr& configuration) const {
  PluginSearchPath path;
  Pins pins(configuration);
  const auto add_pinned = [&](const fs::path& folder, const std::string& origin) {
    for (const auto& file : pins.files_in(folder))
      path.add(file, origin, pins.of(file));
  };
  const auto add = [&](const fs::path& named, const std::string& origin) {
    const auto entry = without_trailing_slash(named);
    add_pinned(entry, origin);
    path.add(entry, origin, pins.of(entry));
  };
  for (const auto& entry : arguments_.plugin_paths)
    add(entry, "--plugin-path");
  if (configuration)
    for (const auto& entry : configuration->plugins.paths)
      add(entry, "configuration");
  if (const auto list = HostServices::environment_variable("SANDFORGE_PLUGIN_PATH")) {
    PluginSearchPath listed;
    listed.add_list(*list, "SANDFORGE_PLUGIN_PATH");
    for (const auto& entry : listed.entries())
      add(entry.path, entry.origin);
  }
  add_pinned(PluginSearchPath::install_folder(), "install folder");
  path.add_install_folder();
  pins.refuse_unused();
  return path;
}

}  // namespace sandforge::cli
