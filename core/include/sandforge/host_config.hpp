// The host's configuration file: YAML, checked as a whole, every mistake with its place.
//
//   plugins:
//     paths: [/opt/sandforge/plugins, ./build/example.so]
//     pins: {example.so: 9f86d081…}
//     policies:                 # by plugin name
//       example:
//         isolation: process    # or inline
//         allow: {process: true, hosts: [a.example], env: [EXAMPLE_TOKEN], secrets: [example]}
//         runner: {user: nobody, memoryMb: 512, openFiles: 256}
//   sandbox:
//     provider: docker
//     options: {network: ISOLATED, env: {GH_TOKEN: "${GH_TOKEN}"}}
//     settings: {baseImage: node:22-slim}
//     wrap: fault               # for tests: see sandforge/fault_plan.hpp
//     faults: {rules: [{at: start, do: delay, ms: 500}]}
//   providers:                  # for hosts that use several; same members as sandbox
//     e2b: {options: {apiKey: "file:secrets/e2b"}}
//   secrets: {example: "file:secrets/example"}
//   session: {store: state/sessions.db}
//   log: {level: info, format: json}
//
// Values of secrets (`secrets`, and x-secret in the provider's options schema) and of `env` may
// refer to variables of the host and to files: "${NAME}" anywhere in the text, or "file:PATH" as
// the whole of it; "$${" stands for "${" and a leading "$file:" for "file:". They are resolved
// late, by functions below, and never stored.
//
// Source: schemas/host-config.schema.json. Threads: any.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/log.hpp"
#include "sandforge/runner.hpp"
#include "sandforge/schema.hpp"
#include "sandforge/yaml.hpp"

namespace sandforge {

struct PluginsConfig {
  std::vector<std::filesystem::path> paths;  // folders and files, absolute
  // To SHA-256, lower case: of a file name, or of a path (what holds a '/'), which is absolute
  // here.
  std::map<std::string, std::string> pins;
  std::map<std::string, PluginPolicy> policies;  // by plugin name
};

// A provider with its options and settings, references unresolved.
struct ProviderConfig {
  std::string name;
  std::string pointer;             // of the object that holds options and settings
  json::Value options = nullptr;   // an object, or null when not given
  json::Value settings = nullptr;  // an object, or null when not given
  json::Value faults = nullptr;    // with `wrap: fault`: of sandforge/fault_plan.hpp, else null
};

struct HostConfig {
  std::string file;                 // as it was named, for messages
  std::filesystem::path directory;  // relative paths are relative to it
  std::string text;
  json::Value document;
  SourceMap source;

  PluginsConfig plugins;
  std::optional<ProviderConfig> sandbox;  // absent: the host decides
  std::map<std::string, ProviderConfig> providers;
  std::map<std::string, std::string> secrets;  // as written, with references
  std::filesystem::path session_store;         // absolute; empty: the host decides
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::text;
  std::map<std::string, json::Value> sections;  // of hosts, see HostConfigSections

  // The provider of that name: of `sandbox`, else of `providers`. Null when it is not configured.
  const ProviderConfig* find_provider(std::string_view name) const noexcept;
};

// Top-level sections that a host adds, each with its schema.
using HostConfigSections = std::map<std::string, CompiledSchemaPtr>;

struct ConfigIssue {
  Issue issue;
  SourcePosition at;
  bool show_line = true;  // false: the line may hold a secret
};

struct HostConfigResult {
  std::shared_ptr<const HostConfig> config;  // null when there are issues
  // What could be read in spite of issues, to look for more of them and for nothing else: providers
  // and plugins, where their own shape is right. Null when the text is no YAML.
  std::shared_ptr<const HostConfig> draft;
  std::vector<ConfigIssue> issues;
  std::string report;  // all issues as text, with lines and carets; empty when there are none
  explicit operator bool() const noexcept { return config != nullptr; }
};

// Reads and checks everything that needs no plugin. `file` is for messages; `directory` resolves
// relative paths. Reads no other file and no variable.
HostConfigResult parse_host_config(std::string text, std::string file,
                                   const std::filesystem::path& directory,
                                   const HostConfigSections& sections = {});

// The same from a file of at most 1 MiB.
HostConfigResult load_host_config(const std::filesystem::path& path,
                                  const HostConfigSections& sections = {});

// Options against the provider's options schema, `defaults` among them and the settings against its
// settings schema (null: not known yet, not checked). Values that are references are not looked at
// until they are resolved. Pointers are into the configuration document.
std::vector<ConfigIssue> check_provider(const HostConfig& config, const ProviderConfig& provider,
                                        const CompiledSchema& options,
                                        const CompiledSchema* settings = nullptr);

// Issues as text in the order of the file, with the lines of the configuration and carets.
std::string format_config_issues(const HostConfig& config, std::vector<ConfigIssue> issues);

// ---- references ---------------------------------------------------------------------------------

// Where references get their values. Tests give their own.
struct ReferenceSource {
  // No value: not set.
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // The content; no value: `error` says why.
  std::function<std::optional<std::string>(const std::filesystem::path& path, std::string& error)>
      file;
};

// The environment of this process, and regular files of at most 64 KiB without NUL, less one
// newline at the end.
ReferenceSource host_references();

bool has_reference(std::string_view text) noexcept;
// It is one reference and nothing else: "${NAME}", or "file:PATH". What is to be stored in place of
// a secret must be.
bool is_one_reference(std::string_view text) noexcept;

struct ResolvedText {
  std::string text;
  std::string error;  // not empty: why not; names the variable or file, never a value
};
// `directory` resolves relative paths of "file:".
ResolvedText resolve_reference(std::string_view text, const std::filesystem::path& directory,
                               const ReferenceSource& source);

struct ResolvedOptions {
  json::Value options;  // an object; with secrets, so never log or store it
  std::vector<ConfigIssue> issues;
};

enum class Unresolved : std::uint8_t {
  refused,   // an issue
  left_out,  // with its member, and without the last check: for removing what needs it no more
};
// Options for the provider: secrets and a record `env` resolved, a list `env` left out because it
// depends on the session (session_env), then checked against the schema once more.
ResolvedOptions resolve_options(const HostConfig& config, const ProviderConfig& provider,
                                const CompiledSchema& options, const ReferenceSource& source,
                                Unresolved unresolved = Unresolved::refused);

struct SessionEnv {
  json::Value env;                 // name to text, or to null for a variable that is to be unset
  std::vector<std::string> names;  // in order
  std::vector<ConfigIssue> issues;
};

// The environment of one session by the `env` option: the record, or of the list every `set` whose
// `when` holds, later ones over earlier ones. A session without a factory matches no factoryId.
// Unresolved; what a store may keep.
SessionEnv session_env(const HostConfig& config, const ProviderConfig& provider,
                       std::optional<std::string_view> factory_id);
// The same with references resolved: what the sandbox gets.
SessionEnv resolved_session_env(const HostConfig& config, const ProviderConfig& provider,
                                std::optional<std::string_view> factory_id,
                                const ReferenceSource& source);

}  // namespace sandforge
