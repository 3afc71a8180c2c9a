// Secrets of configuration files: `secrets` of sandforge/host_config.hpp.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "sandforge/host_config.hpp"
#include "sandforge/secrets.hpp"

namespace sandforge {

// References are resolved each time a value is asked for, so that a file that was replaced counts.
// Which plugin may ask for which is the policies' concern. Thread rule: [any].
class ConfiguredSecrets final : public SecretSource {
 public:
  explicit ConfiguredSecrets(ReferenceSource references = host_references());

  // Those of one more configuration. A name that is known keeps its value.
  void add(const HostConfig& config);

  // Reads a file where the value is one; calls the handler before it returns. not_found: no
  // configuration has the name. invalid "config.secret": its reference cannot be resolved.
  void get(const std::string& plugin, std::shared_ptr<const SessionContext> scope, std::string name,
           Handler<std::optional<std::string>> done) override;

 private:
  struct Entry {
    std::string text;
    std::filesystem::path directory;
  };
  std::optional<Entry> find(const std::string& name) const;

  const ReferenceSource references_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace sandforge
