#include <utility>

#include "sandforge/plugin_loader.hpp"

#ifndef SANDFORGE_PLUGIN_DIR
#define SANDFORGE_PLUGIN_DIR "lib/sandforge/plugins"
#endif

namespace sandforge {

void PluginSearchPath::add(std::filesystem::path path, std::string origin, std::string sha256) {
  if (path.empty()) return;
  Entry entry;
  entry.path = std::move(path);
  entry.origin = std::move(origin);
  entry.sha256 = std::move(sha256);
  entries_.push_back(std::move(entry));
}

void PluginSearchPath::add_list(std::string_view list, const std::string& origin) {
  while (!list.empty()) {
    const auto end = list.find(':');
    add(std::filesystem::path(list.substr(0, end)), origin);
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
  }
}

std::filesystem::path PluginSearchPath::install_folder() {
  std::error_code ec;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ec);
  if (ec) return {};
  return program.parent_path().parent_path() / SANDFORGE_PLUGIN_DIR;
}

void PluginSearchPath::add_install_folder() {
  Entry entry;
  entry.path = install_folder();
  if (entry.path.empty()) return;
  entry.origin = "install folder";
  entry.optional = true;
  entries_.push_back(std::move(entry));
}

}  // namespace sandforge
