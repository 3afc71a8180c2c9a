// What every command works with: plugins, configuration, sessions.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandforge/host_config.hpp"
#include "sandforge/registry.hpp"
#include "sandforge/session.hpp"

namespace sandforge::cli {

struct CommonOptions {
  std::optional<std::string> config;
  std::optional<std::string> state;
  std::vector<std::string> plugin_paths;
  bool dev = false;
  bool json = false;
  std::string log_level = "warn";
};

// Ends the program with a message and a code.
class Fatal : public std::runtime_error {
 public:
  Fatal(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

class App {
 public:
  // Reads the configuration and the plugins' manifests; runs no code of a plugin.
  explicit App(const CommonOptions& options);
  ~App();

  ProviderRegistry& registry() noexcept { return *registry_; }
  const HostConfig* config() const noexcept { return config_.get(); }
  const CommonOptions& options() const noexcept { return options_; }

  // The provider to use: the argument, the configuration, or the default rule. Fatal when there is
  // none.
  std::string choose_provider(const std::optional<std::string>& named) const;
  // With its options of the configuration, references resolved. Fatal when they are refused.
  std::shared_ptr<ProviderBackend> open_provider(const std::string& name);
  Description describe(const std::string& name);
  // What a configuration sets for this provider; null when nothing.
  json::Value configured_settings(const std::string& name) const;

  SessionManager& sessions();  // opens the store on the first call

 private:
  Result<json::Object> resolved_options(const HostConfig* config, const std::string& name) const;
  void open_for_session(const SessionRecord& record, Handler<OpenedProvider> done);
  std::filesystem::path state_folder() const;

  const CommonOptions options_;
  std::shared_ptr<const HostConfig> config_;
  std::shared_ptr<Logger> logger_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<ProviderRegistry> registry_;
  std::shared_ptr<SessionManager> sessions_;
};

// Asks a provider for its description. Blocks.
Description describe(const std::shared_ptr<ProviderBackend>& provider);

}  // namespace sandforge::cli
