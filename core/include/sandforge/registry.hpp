// The providers that a host can open: of plugins that were found, and registered in code.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/backend.hpp"
#include "sandforge/plugin_loader.hpp"

namespace sandforge {

// Opens a provider with options. Called on the lane; the handler comes there too, later or at once.
using ProviderFactory = std::function<void(json::Object options, Lane lane,
                                           Handler<std::shared_ptr<ProviderBackend>> done)>;

// A provider that the host brings itself.
struct ProviderDefinition {
  std::string name;  // a-z, 0-9, '-', '_' and '.'
  std::string display_name;
  std::string description;
  json::Object options_schema = closed_schema();
  ProviderFactory open;

  // An object without members: nothing to tune.
  static json::Object closed_schema();
};

// The callback form: a function that makes sandboxes, as the provider "custom". The environment
// exposes nothing to tune. features: what its sandboxes offer; by default all that core asks for.
using SandboxFactory = std::function<Result<std::shared_ptr<SandboxBackend>>(CreateRequest)>;
std::vector<std::string> command_features();
ProviderDefinition custom_provider(SandboxFactory create,
                                   std::vector<std::string> features = command_features());
// What stands for "nothing is configured": the provider "none", whose sandboxes are refused.
ProviderDefinition none_provider();

struct ProviderInfo {
  std::string name;
  std::string display_name;
  std::string description;
  json::Object options_schema;
  std::string plugin;   // empty: registered in code
  std::string version;  // of the plugin
  std::filesystem::path path;
  std::string origin;
  std::vector<std::string> env;  // variables of the host that its plugin may read
  // Host services that its plugin's manifest names and its policy grants nothing of: "process",
  // "http", "secrets". Only where it runs in a process of its own.
  std::vector<std::string> not_granted;
  bool loaded = false;       // its code runs
  bool in_process = false;   // in a process of its own, or would
  std::uint64_t faults = 0;  // rules of the boundary that its plugin has broken so far
};

// Names the issues of a schema in an error with the reason "schema.invalid".
Result<void> check_options_schema(const json::Value& schema);
Result<void> check_settings_schema(const json::Value& schema);

// Thread rule: every function from any thread; the blocking ones not on a thread of the Runtime.
class ProviderRegistry {
 public:
  struct Options {
    Options() {}
    // Shared with every plugin. Null: a log that goes nowhere, the system's clock and environment.
    // Its runtime is always the registry's.
    std::shared_ptr<const HostServices> services;
    RunnerOptions runner;  // which plugins run in processes of their own; by default none
    SchemaCheckFn check_options = check_options_schema;    // of manifests, before code runs
    SchemaCheckFn check_settings = check_settings_schema;  // of what describe answers
  };

  // The runtime must outlive the registry and all that was opened through it; the registry must
  // outlive the opens that are running.
  explicit ProviderRegistry(Runtime& runtime, Options options = Options());
  ~ProviderRegistry();
  ProviderRegistry(const ProviderRegistry&) = delete;
  ProviderRegistry& operator=(const ProviderRegistry&) = delete;

  // Adds the plugins of a search path; runs no code of them. What is there already keeps its names:
  // a later plugin with one of them is refused as duplicate_provider or duplicate_plugin. Blocks on
  // the file system.
  LoadReport scan(const PluginSearchPath& path);
  // already_exists when the name is taken, invalid when it is no name.
  Result<void> add(ProviderDefinition definition);
  // Loads every plugin that was found and opens and describes its providers, for diagnosis. One
  // that does not open without options is noted and not refused. Blocks.
  LoadReport load_all();
  // See PluginLoader.
  void add_policies(const std::map<std::string, PluginPolicy>& policies) {
    loader_.add_policies(policies);
  }
  std::vector<std::string> quarantined() const { return loader_.quarantined(); }
  std::size_t clear_quarantine() { return loader_.clear_quarantine(); }
  // Of all scans so far, with what loading found out since.
  LoadReport report() const;

  std::vector<ProviderInfo> list() const;  // by name
  std::optional<ProviderInfo> find(std::string_view name) const;

  // Opens a provider on a new lane; loads its plugin when that has not happened yet. not_found
  // names the nearest name, or why a plugin that declares it is not usable. `options` are valid by
  // its options schema and have their references resolved.
  void async_open(std::string name, json::Object options,
                  Handler<std::shared_ptr<ProviderBackend>> done);
  std::shared_ptr<ProviderBackend> open(std::string name, json::Object options = {});

 private:
  struct Entry;
  LoadAttempt* find_attempt(const PluginFile& file);  // a usable one, else null; with the mutex
  PluginLoader::Loaded load(const PluginFile& file);
  void check_provider(const PluginFile& file, const std::string& name);
  Error unknown(const std::string& name) const;

  Runtime& runtime_;
  const Options options_;
  PluginLoader loader_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Entry>, std::less<>> entries_;
  std::vector<std::shared_ptr<const PluginFile>> files_;
  std::map<std::filesystem::path, plugin::Plugin*> loaded_;
  LoadReport report_;
};

}  // namespace sandforge
