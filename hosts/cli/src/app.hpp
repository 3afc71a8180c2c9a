// What the subcommands share, made when it is first needed.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "interrupts.hpp"
#include "sandforge/configured_secrets.hpp"
#include "sandforge/host_config.hpp"
#include "sandforge/registry.hpp"
#include "sandforge/session.hpp"
#include "terminal.hpp"

namespace sandforge::cli {

using ConfigPtr = std::shared_ptr<const HostConfig>;

// Where things lie, by the environment and the command line.
struct Places {
  std::filesystem::path state;  // sessions.db and what plugins keep
  std::filesystem::path cache;
  std::filesystem::path runtime;  // sockets: short, and the same for every call of this user
};
Places find_places(const std::string& state_argument);

// The one configuration file, or none.
class Configurations {
 public:
  // Throws the Error: not_found, or invalid with the report of every mistake as its message.
  ConfigPtr load(const std::string& file);
  ConfigPtr find(const std::string& file) const;  // null unless it was loaded

 private:
  mutable std::mutex mutex_;
  std::map<std::string, ConfigPtr> loaded_;
};

// A provider opened with the options that a configuration gives it.
struct ProviderSetup {
  std::shared_ptr<ProviderBackend> backend;
  Description description;
  CompiledSchemaPtr settings_schema;
  json::Value host_defaults = nullptr;  // the option `defaults`
  std::optional<EnvMap> session_env;    // where the option `env` is a list
};

class App {
 public:
  // providers: registered in code, before the plugins are looked for.
  explicit App(GlobalArguments arguments, std::vector<ProviderDefinition> providers = {});
  ~App();

  const GlobalArguments& arguments() const noexcept { return arguments_; }
  const Terminal& terminal() const noexcept { return terminal_; }
  Interrupts& interrupts() noexcept { return interrupts_; }

  ConfigPtr config();  // of --config; null without one
  // With the plugins that a configuration names, of --config when it is null. From any thread.
  ProviderRegistry& registry(const ConfigPtr& config = nullptr);
  const LoadReport& scan_report();  // of the first scan
  SessionStore& store();
  // The set-up options are those of the manager for the whole run.
  SessionManager& manager(SetupOptions setup = {});
  Runtime& runtime() noexcept { return *runtime_; }

  // The provider of a new session; throws the Error where sandboxes are off.
  std::string choose_provider(const std::string& named);
  // The one that is named, else that of the configuration's `sandbox`; throws the Error of neither.
  std::string known_provider(const std::string& named);
  // With the options of this configuration (null: none), and with its faults where it is to be
  // used and not only looked at. Throws the Error.
  enum class Faults : std::uint8_t { none, injected };
  ProviderSetup open_provider(const std::string& name, const ConfigPtr& config,
                              const json::Object& context = {},
                              OpenPurpose purpose = OpenPurpose::use, Faults faults = Faults::none);
  // Throws the Error of options and settings of --config that are not valid, before anything else
  // is done with them; nothing when it says nothing about the provider.
  void check_configured(const std::string& provider);
  // Policies of the configuration that fit no plugin: their words have no effect.
  struct UnfitPolicy {
    std::string name;
    std::string suggestion;  // the plugin that may be meant; may be empty
    std::string message() const;
  };
  std::vector<UnfitPolicy> unfit_policies(const ConfigPtr& config);
  // A host service that a plugin in a process of its own needs, and that nothing grants it.
  struct MissingGrant {
    std::string plugin;
    std::string service;
    std::string means;    // what the service is for
    std::string pointer;  // where the configuration could say it; empty without one
    std::string add;      // where to write which line
    bool used = false;    // the configuration has options or settings of its provider
    std::string message() const;
  };
  // Of all plugins that were found, those of the configuration first. What the configuration
  // refuses in so many words (`process: false`) is not missing.
  std::vector<MissingGrant> missing_grants(const ConfigPtr& config);
  // The command that shows every plugin as this call finds it.
  std::string doctor_command(const ConfigPtr& config) const;
  std::optional<std::string> resolve(const std::string& reference, const ConfigPtr& config);
  Logger& logger() noexcept { return *logger_; }
  Redactor& redactor() noexcept { return logger_->redactor(); }

 private:
  std::shared_ptr<ProviderBackend> open_faulty(const ProviderConfig& configured,
                                               json::Object options, ProviderRegistry& known);
  void open_for_record(const SessionRecord& record, OpenPurpose purpose,
                       Handler<OpenedProvider> done);
  PluginSearchPath search_path(const ConfigPtr& config) const;
  std::vector<UnfitPolicy> unfit_policies_in(const LoadReport& report, const ConfigPtr& config);
  std::filesystem::path plugin_state();
  void make_registry();
  void make_services();

  const GlobalArguments arguments_;
  const Terminal terminal_;
  Interrupts interrupts_;
  const std::stop_callback<std::function<void()>> hurried_;  // whoever wants the end wants it now
  std::vector<ProviderDefinition> providers_;
  const Places places_;
  Configurations configurations_;
  std::shared_ptr<Logger> logger_;
  std::unique_ptr<Runtime> runtime_;
  std::mutex registry_mutex_;
  const std::shared_ptr<ConfiguredSecrets> secrets_ = std::make_shared<ConfiguredSecrets>();
  std::unique_ptr<ProviderRegistry> registry_;
  std::set<std::string> scanned_;  // configurations whose plugins the registry knows
  LoadReport scan_report_;
  std::shared_ptr<SessionStore> store_;
  std::shared_ptr<SessionManager> manager_;
};

}  // namespace sandforge::cli
