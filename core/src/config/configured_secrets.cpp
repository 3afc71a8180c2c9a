#include "sandforge/configured_secrets.hpp"

#include <utility>

namespace sandforge {

ConfiguredSecrets::ConfiguredSecrets(ReferenceSource references)
    : references_(std::move(references)) {}

void ConfiguredSecrets::add(const HostConfig& config) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, text] : config.secrets)
    entries_.emplace(name, Entry{text, config.directory});
}

std::optional<ConfiguredSecrets::Entry> ConfiguredSecrets::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

void ConfiguredSecrets::get(const std::string&, std::shared_ptr<const SessionContext>,
                            std::string name, Handler<std::optional<std::string>> done) {
  const auto entry = find(name);
  if (!entry)
    return std::move(done)(Error(
        Status::not_found, "the configuration has no secret " + name + ": name it under secrets"));
  auto resolved = resolve_reference(entry->text, entry->directory, references_);
  if (!resolved.error.empty())
    return std::move(done)(
        Error(Status::invalid, "the secret " + name + ": " + resolved.error, "config.secret"));
  std::move(done)(std::optional<std::string>(std::move(resolved.text)));
}

}  // namespace sandforge
