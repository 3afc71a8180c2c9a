// Finding, checking and loading plugins, with a report of every candidate that was tried.
//
// Scanning reads the manifests and runs no code of any plugin. Loading runs it: a plugin is never
// unloaded, and a process loads each file once. Source: sandforge/abi.h, Host and plugin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/error.hpp"
#include "sandforge/host_services.hpp"
#include "sandforge/manifest.hpp"
#include "sandforge/runner.hpp"

namespace sandforge {

namespace plugin {
class Plugin;
}
namespace runner {
class Quarantine;
class RemotePlugin;
}  // namespace runner

// How far a candidate came. Everything after `loaded` is the reason why it is not usable; the error
// of each has the reason "plugin.NAME".
enum class LoadStage : std::uint8_t {
  found,   // its manifest was read, its code has not run
  loaded,  // initialised
  not_found,
  not_readable,
  not_regular,
  unsafe_permissions,
  bad_pin,
  hash_mismatch,
  truncated,
  not_elf,
  wrong_architecture,
  no_manifest,
  manifest_invalid,
  abi_major,
  schema_invalid,
  duplicate_provider,
  changed,
  missing_dependency,
  undefined_symbol,
  load_failed,
  no_entry,
  missing_member,
  init_failed,
  provider_unusable,  // only by load_all: it does not open or describe a provider that it declares
  too_many,
  no_runner,
  quarantined,
  duplicate_plugin,
};
inline constexpr std::size_t kLoadStages = 28;
std::string_view to_string(LoadStage stage) noexcept;  // "not_found", …

struct LoadAttempt {
  std::filesystem::path path;
  std::string origin;  // what named it: "--plugin", "configuration", "install folder", …
  LoadStage stage = LoadStage::found;
  std::string message;      // what is wrong, for a person; empty when nothing is
  std::string loader_text;  // the dynamic loader's own words, where it spoke
  std::string hint;         // what to do about it
  json::Object details;
  std::string plugin;                  // name and version, once the manifest was read
  std::string version;                 //
  std::vector<std::string> providers;  // that it declares
  bool in_process = false;             // its code runs in a process of its own, or would

  bool usable() const noexcept { return stage <= LoadStage::loaded; }
  Error to_error() const;  // only when !usable()
};
json::Value to_json(const LoadAttempt& attempt);

// A folder or file of the search path that led to no candidate.
struct SearchNote {
  std::filesystem::path path;
  std::string origin;
  std::string message;  // such as "no such folder", "no plugins in it"
};

struct LoadReport {
  std::vector<LoadAttempt> attempts;
  std::vector<SearchNote> notes;

  std::size_t refused() const noexcept;
  std::string to_text() const;  // for a person, one paragraph per candidate, ends with a newline
};
json::Value to_json(const LoadReport& report);

// Where plugins are looked for, in this order; the first that declares a provider, or that calls
// itself by a name, has it.
class PluginSearchPath {
 public:
  struct Entry {
    std::filesystem::path path;  // a file, or a folder whose *.so are candidates
    std::string origin;
    std::string sha256;     // hex; of a file: load exactly these bytes. Empty: any
    bool optional = false;  // no note when it does not exist
  };

  void add(std::filesystem::path path, std::string origin, std::string sha256 = {});
  // Paths with ':' between them, as in SANDFORGE_PLUGIN_PATH. Empty ones are left out.
  void add_list(std::string_view list, const std::string& origin);
  // lib/sandforge/plugins beside the folder of the running program.
  void add_install_folder();
  // That folder, whether it exists or not; empty when the program's own place cannot be told.
  static std::filesystem::path install_folder();

  const std::vector<Entry>& entries() const noexcept { return entries_; }

 private:
  std::vector<Entry> entries_;
};

// A plugin whose manifest was read.
struct PluginFile {
  std::filesystem::path path;  // canonical
  std::string origin;
  std::string sha256;  // pinned to it, or empty
  Manifest manifest;
};

// Checks a schema before anything uses it; an error says what is wrong with it.
using SchemaCheckFn = std::function<Result<void>(const json::Value& schema)>;

class PluginLoader {
 public:
  struct Options {
    Options() {}
    std::shared_ptr<const HostServices> services;  // what plugins get; null: nothing
    SchemaCheckFn check_options_schema;            // of each provider, at load; may be empty
    RunnerOptions runner;                          // which plugins run in processes of their own
  };

  explicit PluginLoader(Options options);
  ~PluginLoader();  // plugins that it attached its services to lose them
  PluginLoader(const PluginLoader&) = delete;
  PluginLoader& operator=(const PluginLoader&) = delete;

  struct Scan {
    LoadReport report;
    std::vector<PluginFile> files;  // the usable ones, in order
  };
  // What exists already, and whose it is, for a person.
  struct Taken {
    std::map<std::string, std::string> providers;
    std::map<std::string, std::string> plugins;
  };
  // A plugin's name is its own, as its providers are: grants, secrets, state and folders go by it.
  // Blocks on the file system. [any]
  Scan scan(const PluginSearchPath& path, Taken taken = {}) const;

  struct Loaded {
    LoadAttempt attempt;
    plugin::Plugin* plugin = nullptr;  // null unless attempt.usable()
  };
  // Checks the file again, loads and initialises it, in line or in a process of its own; at once
  // when that has happened before. Blocks. Not on a lane. [any]
  Loaded load(const PluginFile& file);

  // Policies of more plugins; those that are known already stay.
  void add_policies(const std::map<std::string, PluginPolicy>& policies);
  // Whether that plugin runs in a process of its own.
  bool isolates(const PluginFile& file) const;
  // Services that its manifest names, that need a grant, and that its policy grants nothing of.
  // Empty where it runs inside this process, which needs none.
  std::vector<std::string> not_granted(const PluginFile& file) const;
  // Plugins that are not run because their process was lost too often, in words; one line each.
  std::vector<std::string> quarantined() const;
  // Lets them run again, and says how many there were. Not those that this loader has refused.
  std::size_t clear_quarantine();

 private:
  Loaded load_remote(const PluginFile& file);
  PluginPolicy policy_of(const std::string& plugin) const;

  const Options options_;
  std::set<plugin::Plugin*> attached_;
  std::mutex mutex_;
  mutable std::mutex policies_mutex_;
  std::map<std::string, PluginPolicy> policies_;
  const std::shared_ptr<runner::Quarantine> quarantine_;
  std::vector<runner::RemotePlugin*> remotes_;  // never destroyed, like their plugins
};

// Lower-case hex SHA-256 of a file, for pins. not_found; forbidden, unavailable: it cannot
// be opened; internal: it cannot be read.
Result<std::string> file_sha256(const std::filesystem::path& path);

}  // namespace sandforge
