#include "plugin/inspect.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/names.hpp"
#include "plugin/pinned.hpp"
#include "sandforge/abi.h"

namespace sandforge::plugin {
namespace {

// Writable by users that are neither root nor us, through the group or for everybody.
std::string writable_by_others(const struct stat& status, const char* what) {
  if ((status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0)
    return fmt::format("{} is writable by every user (mode {:04o})", what, status.st_mode & 07777);
  const bool foreign_group = status.st_gid != 0 && status.st_gid != ::getegid();
  if ((status.st_mode & S_IWGRP) != 0 && foreign_group)
    return fmt::format("{} is writable by group {} (mode {:04o})", what, status.st_gid,
                       status.st_mode & 07777);
  if (status.st_uid != 0 && status.st_uid != ::geteuid())
    return fmt::format("{} belongs to user {}", what, status.st_uid);
  return {};
}

LoadStage stage_of(const std::string& reason) {
  for (const LoadStage stage : {LoadStage::truncated, LoadStage::not_elf,
                                LoadStage::wrong_architecture, LoadStage::no_manifest}) {
    if (reason == "plugin." + std::string(to_string(stage))) return stage;
  }
  return LoadStage::manifest_invalid;
}

std::string hint_of(LoadStage stage) {
  switch (stage) {
    case LoadStage::truncated:
      return "copy or install the file again";
    case LoadStage::not_elf:
      return "a plugin is a shared library; helper files must not end in .so";
    case LoadStage::wrong_architecture:
      return "install the build of this plugin for this machine";
    case LoadStage::no_manifest:
      return "build it with sandforge_add_plugin(), which embeds the manifest; strip keeps it";
    default:
      return "ask the author of the plugin for a corrected build";
  }
}

// The canonical path of an open file, in one call instead of one for each of its folders. Empty
// where the kernel does not tell.
std::filesystem::path path_of(const posix::Fd& file) {
  std::array<char, PATH_MAX> path;
  const auto link = fmt::format("/proc/self/fd/{}", file.get());
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  const std::string_view text(path.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  constexpr std::string_view gone = " (deleted)";
  const bool known = text.size() < path.size() && text.substr(0, 1) == "/" &&
                     (text.size() < gone.size() || text.substr(text.size() - gone.size()) != gone);
  return known ? text : std::string_view();
}

std::filesystem::path canonical_or_absolute(const std::filesystem::path& path) {
  std::error_code ec;
  auto out = std::filesystem::canonical(path, ec);
  return ec ? std::filesystem::absolute(path) : out;
}

bool open_file(Inspection& out, const std::filesystem::path& path) {
  out.file = posix::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const int number = errno;
  if (out.file) out.path = path_of(out.file);
  if (out.path.empty()) out.path = canonical_or_absolute(path);
  if (out.file) return true;
  if (number == ENOENT || number == ENOTDIR) {
    refuse(out.attempt, LoadStage::not_found, "there is no such file",
           "check the path, or install the plugin");
  } else {
    refuse(out.attempt, LoadStage::not_readable,
           fmt::format("cannot be opened: {}", std::strerror(number)),
           "make it readable for this user");
  }
  return false;
}

bool check_file(Inspection& out, struct stat& status) {
  if (::fstat(out.file.get(), &status) != 0) {
    refuse(out.attempt, LoadStage::not_readable,
           fmt::format("cannot be looked at: {}", std::strerror(errno)), "");
    return false;
  }
  out.identity = {status.st_dev, status.st_ino};
  if (!S_ISREG(status.st_mode)) {
    refuse(out.attempt, LoadStage::not_regular,
           S_ISDIR(status.st_mode) ? "is a folder" : "is no regular file",
           "name the shared library itself");
    return false;
  }
  return true;
}

// Files that others could change: writable by others, or owned by another user than us and root;
// the same for the folder. Empty when it is safe.
std::string unsafe_because(const struct stat& file, const std::filesystem::path& canonical) {
  if (auto why = writable_by_others(file, "the file"); !why.empty()) return why;
  struct stat folder {};
  if (::stat(canonical.parent_path().c_str(), &folder) != 0)
    return fmt::format("its folder cannot be looked at: {}", std::strerror(errno));
  return writable_by_others(folder, "its folder");
}

bool check_pin(Inspection& out) {
  const std::string wanted = normal_sha256(out.sha256);
  if (wanted.empty()) {
    refuse(out.attempt, LoadStage::bad_pin, "its sha256 is not 64 hexadecimal digits",
           "sha256sum prints the digest of a file");
    return false;
  }
  out.sha256 = wanted;
  auto copy = copy_sealed(out.file.get());
  if (!copy) {
    refuse(out.attempt, LoadStage::load_failed, copy.error().message, "");
    return false;
  }
  auto actual = sha256_of(copy->get());
  if (!actual || *actual != wanted) {
    refuse(out.attempt, LoadStage::hash_mismatch,
           actual ? "its bytes are not the ones that it is pinned to" : actual.error().message,
           "pin the new digest if the change is meant");
    out.attempt.details.set("expected", wanted);
    if (actual) out.attempt.details.set("actual", *actual);
    return false;
  }
  out.file = std::move(*copy);
  return true;
}

bool check_manifest(Inspection& out) {
  auto text = manifest_text(out.file.get());
  if (!text) {
    const LoadStage stage = stage_of(text.error().reason);
    refuse(out.attempt, stage, text.error().message, hint_of(stage));
    return false;
  }
  auto manifest = parse_manifest(*text);
  if (!manifest) {
    refuse(out.attempt, LoadStage::manifest_invalid, manifest.error().message,
           hint_of(LoadStage::manifest_invalid));
    out.attempt.details = manifest.error().details;
    return false;
  }
  out.manifest = std::move(*manifest);
  out.attempt.plugin = out.manifest.name;
  out.attempt.version = out.manifest.version;
  for (const ManifestProvider& provider : out.manifest.providers)
    out.attempt.providers.push_back(provider.name);
  if (out.manifest.abi_major == SF_ABI_MAJOR) return true;
  refuse(out.attempt, LoadStage::abi_major,
         fmt::format("is built for version {} of the plugin interface, this program has version {}",
                     out.manifest.abi_major, SF_ABI_MAJOR),
         out.manifest.abi_major > SF_ABI_MAJOR ? "update this program, or install an older plugin"
                                               : "install a newer build of the plugin");
  return false;
}

}  // namespace

void refuse(LoadAttempt& attempt, LoadStage stage, std::string message, std::string hint) {
  attempt.stage = stage;
  attempt.message = std::move(message);
  attempt.hint = std::move(hint);
}

bool check_schemas(LoadAttempt& attempt, const Manifest& manifest, const SchemaCheckFn& check) {
  if (!check) return true;
  for (std::size_t i = 0; i < manifest.providers.size(); ++i) {
    auto good = check(manifest.providers[i].options_schema);
    if (good.ok()) continue;
    refuse(attempt, LoadStage::schema_invalid,
           fmt::format("the options schema of provider {} is not valid: {}",
                       manifest.providers[i].name, good.error().message),
           "ask the author of the plugin for a corrected build");
    attempt.details = good.error().details;
    attempt.details.set("manifestPointer", fmt::format("/providers/{}/optionsSchema", i));
    return false;
  }
  return true;
}

bool check_services(LoadAttempt& attempt, const Manifest& manifest) {
  const auto missing = unknown_services(manifest);
  if (missing.empty()) return true;
  refuse(
      attempt, LoadStage::missing_dependency,
      fmt::format("its manifest names {} that this host does not offer: {}",
                  missing.size() == 1 ? "a service" : "services", list_unknown_services(missing)),
      fmt::format("this host offers {}: another version may offer more",
                  fmt::join(kServiceNames, ", ")));
  attempt.details.set("missingServices", json::Array(missing.begin(), missing.end()));
  return false;
}

Inspection inspect(const std::filesystem::path& path, const std::string& origin,
                   const std::string& sha256) {
  Inspection out;
  out.attempt.path = path;
  out.attempt.origin = origin;
  out.sha256 = sha256;
  struct stat status {};
  if (!open_file(out, path) || !check_file(out, status)) return out;
  if (!out.sha256.empty()) {
    // Pinned: who may write the file does not matter, its bytes do.
    if (!check_pin(out)) return out;
  } else if (auto why = unsafe_because(status, out.path); !why.empty()) {
    refuse(out.attempt, LoadStage::unsafe_permissions, std::move(why),
           fmt::format("chmod go-w the file and its folder, let this user or root own them, or pin "
                       "the plugin to its sha256"));
    return out;
  }
  check_manifest(out);
  return out;
}

}  // namespace sandforge::plugin
