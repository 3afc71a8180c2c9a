// Plugins whose process was lost too often, by the content of their file: they are not run again
// until somebody says so. One JSON file each in a folder of the host's state.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sandforge/error.hpp"

namespace sandforge::runner {

struct Quarantined {
  std::string sha256;
  std::string plugin;
  std::string path;
  std::string reason;
  std::int64_t at_ns = 0;  // since the Unix epoch
};

// What a call of such a plugin is refused with.
Error quarantine_error(const Quarantined& entry);

// Thread rule: every function from any thread; all of them touch files.
class Quarantine {
 public:
  // Empty: kept in memory.
  explicit Quarantine(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::optional<Quarantined> find(const std::string& sha256) const;
  Result<void> add(const Quarantined& entry);
  std::vector<Quarantined> list() const;

  // The times at which the process of a plugin was started again, of every host that keeps them
  // here: a program that runs once for each command would never lose one often enough.
  void add_restart(const std::string& sha256, std::int64_t now_ns);
  // How many of them lie within the time before now. 0 without a folder: a host counts its own.
  std::size_t restarts(const std::string& sha256, std::int64_t now_ns,
                       std::chrono::nanoseconds within) const;

  // How many there were. Restarts are forgotten, too.
  std::size_t clear();

 private:
  const std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::map<std::string, Quarantined> known_;  // of this process
};

}  // namespace sandforge::runner
