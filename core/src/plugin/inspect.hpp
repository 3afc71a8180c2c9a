// Everything about a candidate that can be known without running its code.
#pragma once

#include <filesystem>
#include <string>

#include <sys/types.h>

#include "sandforge/plugin_loader.hpp"
#include "sandforge/posix/fd.hpp"

namespace sandforge::plugin {

// Which file it is, whatever it is called.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct Inspection {
  LoadAttempt attempt;         // stage found, or the reason against it
  std::filesystem::path path;  // canonical
  posix::Fd file;              // open for reading; of a pinned one the sealed copy
  FileIdentity identity;
  std::string sha256;  // when pinned
  Manifest manifest;
};

Inspection inspect(const std::filesystem::path& path, const std::string& origin,
                   const std::string& sha256);

// False, with what stands against it, when an options schema of the manifest is not valid.
bool check_schemas(LoadAttempt& attempt, const Manifest& manifest, const SchemaCheckFn& check);

// False, with what stands against it, when the manifest names a service that no host of this
// version has, by mistake or too early.
bool check_services(LoadAttempt& attempt, const Manifest& manifest);

// Sets what stands against a candidate.
void refuse(LoadAttempt& attempt, LoadStage stage, std::string message, std::string hint);

}  // namespace sandforge::plugin
