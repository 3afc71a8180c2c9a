#include <unistd.h>

#include <cstdlib>

#include "app.hpp"

namespace sandforge::cli {
namespace {

// A relative XDG folder is to be ignored, says its specification.
std::optional<std::filesystem::path> folder_of(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value != '/') return std::nullopt;
  return std::filesystem::path(value);
}

std::filesystem::path home() {
  if (auto set = folder_of("HOME")) return *set;
  const char* value = std::getenv("HOME");
  const std::string why = value == nullptr || *value == '\0'
                              ? std::string("is not set")
                              : "is '" + std::string(value) + "', which is no absolute path";
  throw_error(
      Error(Status::invalid, "HOME " + why + ": name a folder with --state", "cli.no_home"));
}

std::filesystem::path runtime_folder() {
  if (auto set = folder_of("SANDFORGE_RUNTIME_DIR")) return *set;
  if (auto set = folder_of("XDG_RUNTIME_DIR")) return *set / "sandforge";
  if (::geteuid() == 0 && ::access("/run", W_OK) == 0) return "/run/sandforge";
  return "/tmp/sandforge-" + std::to_string(::geteuid());
}

}  // namespace

Places find_places(const std::string& state_argument) {
  Places out;
  const char* variable = std::getenv("SANDFORGE_STATE_DIR");
  if (!state_argument.empty()) {
    out.state = std::filesystem::absolute(state_argument);
  } else if (variable != nullptr && *variable != '\0') {
    out.state = std::filesystem::absolute(variable);
  } else if (auto set = folder_of("XDG_STATE_HOME")) {
    out.state = *set / "sandforge";
  } else {
    out.state = home() / ".local/state/sandforge";
  }
  const auto cache = folder_of("XDG_CACHE_HOME");
  out.cache = cache ? *cache / "sandforge" : out.state / "cache";
  out.runtime = runtime_folder();
  return out;
}

}  // namespace sandforge::cli
