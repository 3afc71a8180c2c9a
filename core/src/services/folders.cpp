// The folders of the `paths` service.
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/plugin.hpp"
#include "sandforge/ext/host_paths.h"
#include "services/plugin_host.hpp"

namespace sandforge::services {
namespace {

constexpr std::size_t kMaxRuntimePath = 60;  // leaves room for a socket's name in sockaddr_un

std::filesystem::path parent_of(const PluginFolders& folders, std::uint32_t kind) {
  switch (kind) {
    case SF_PATH_DATA:
      return folders.data;
    case SF_PATH_CACHE:
      return folders.cache;
    case SF_PATH_RUNTIME:
      return folders.runtime;
    default:
      return {};
  }
}

// Makes a folder that only this user can look into; an existing one must be just that.
std::string make_private(const std::filesystem::path& path) {
  std::error_code ec;
  std::filesystem::create_directories(path.parent_path(), ec);
  if (ec) return fmt::format("has no parent folder: {}", ec.message());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fmt::format("cannot be made: {}", std::strerror(errno));
  return why_not_private(path, ::geteuid());
}

}  // namespace

std::string why_not_private(const std::filesystem::path& path, uid_t owner) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0)
    return errno == ENOENT ? std::string()
                           : fmt::format("cannot be looked at: {}", std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) return "is no folder";
  if (status.st_uid != owner) return "belongs to another user";
  if ((status.st_mode & 0077) != 0) return "is open to other users";
  return {};
}

void tell_folder(const HostServices& services, std::string_view plugin,
                 const std::filesystem::path& path, std::string_view why) {
  if (services.logger)
    services.logger->write(LogLevel::warn, "a plugin's folder cannot be used",
                           {{"plugin", plugin}, {"path", path.native()}, {"why", why}});
}

const std::string* PluginHost::folder(std::uint32_t kind) {
  const auto services = this->services();
  std::filesystem::path path;
  std::string problem;
  if (kind == SF_PATH_PLUGIN) {
    path = plugin_.file.parent_path();
    if (path.empty()) return nullptr;
  } else {
    if (!services) return nullptr;
    const auto parent = parent_of(services->folders, kind);
    if (parent.empty()) return nullptr;
    path = std::filesystem::absolute(parent) / plugin_.name();
    problem = make_private(path);
    if (kind == SF_PATH_RUNTIME && path.native().size() > kMaxRuntimePath)
      problem = fmt::format("is longer than {} bytes", kMaxRuntimePath);
  }
  if (!problem.empty()) {
    tell_folder(*services, plugin_.name(), path, problem);
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  return &*folders_.insert(path.native()).first;
}

}  // namespace sandforge::services
