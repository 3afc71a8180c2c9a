#include "sandforge/host_config.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "config_schema.hpp"
#include "issues.hpp"
#include "regular_file.hpp"
#include "sandforge/fault_plan.hpp"

namespace sandforge {
namespace {

namespace cd = config_detail;

const CompiledSchema& host_schema() {
  static const CompiledSchemaPtr schema = [] {
    auto compiled = compile_schema_text(cd::host_config_schema, SchemaProfile::full);
    if (!compiled) throw std::logic_error(sandforge::format_issues(compiled.issues));
    return std::move(compiled.schema);
  }();
  return *schema;
}

const json::Value* member(const json::Value& value, std::string_view name) {
  return value.find(name);
}

std::string text_of(const json::Value* value) {
  return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

std::vector<std::string> texts_of(const json::Value* value) {
  std::vector<std::string> out;
  if (value == nullptr || !value->is_array()) return out;
  for (const json::Value& item : value->as_array())
    out.push_back(item.as_string());
  return out;
}

std::filesystem::path absolute_path(const std::filesystem::path& directory,
                                    const std::string& path) {
  return (directory / path).lexically_normal();
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool bool_of(const json::Value* value) {
  return value != nullptr && value->is_bool() && value->as_bool();
}

void read_number(const json::Value* value, std::uint64_t& out) {
  if (value != nullptr) out = static_cast<std::uint64_t>(value->as_integer());
}

PluginPolicy read_policy(const json::Value& value) {
  PluginPolicy out;
  const std::string isolation = text_of(member(value, "isolation"));
  if (isolation == "process") out.isolation = Isolation::process;
  if (isolation == "inline") out.isolation = Isolation::in_line;
  if (const json::Value* allow = member(value, "allow")) {
    out.process = bool_of(member(*allow, "process"));
    const auto env = texts_of(member(*allow, "env"));
    const auto secrets = texts_of(member(*allow, "secrets"));
    out.env.insert(env.begin(), env.end());
    out.secrets.insert(secrets.begin(), secrets.end());
    const auto hosts = texts_of(member(*allow, "hosts"));
    const auto sockets = texts_of(member(*allow, "unixSockets"));
    out.hosts.insert(hosts.begin(), hosts.end());
    out.unix_sockets.insert(sockets.begin(), sockets.end());
  }
  if (const json::Value* runner = member(value, "runner")) {
    out.user = text_of(member(*runner, "user"));
    read_number(member(*runner, "memoryMb"), out.memory_mb);
    read_number(member(*runner, "openFiles"), out.open_files);
  }
  return out;
}

PluginsConfig read_plugins(const json::Value& value, const std::filesystem::path& directory) {
  PluginsConfig plugins;
  for (const std::string& path : texts_of(member(value, "paths"))) {
    plugins.paths.push_back(absolute_path(directory, path));
  }
  if (const json::Value* pins = member(value, "pins")) {
    for (const auto& [name, digest] : pins->as_object()) {
      const bool path = name.find('/') != std::string::npos;
      plugins.pins[path ? absolute_path(directory, name).string() : name] =
          lower(digest.as_string());
    }
  }
  if (const json::Value* policies = member(value, "policies")) {
    for (const auto& [name, policy] : policies->as_object())
      plugins.policies[name] = read_policy(policy);
  }
  return plugins;
}

void read_faults(ProviderConfig& provider, const json::Value& value) {
  const json::Value* faults = member(value, "faults");
  if (faults != nullptr && member(value, "wrap") != nullptr) provider.faults = *faults;
}

ProviderConfig read_provider(std::string name, std::string pointer, const json::Value& value) {
  ProviderConfig provider;
  provider.name = std::move(name);
  provider.pointer = std::move(pointer);
  if (const json::Value* options = member(value, "options")) provider.options = *options;
  if (const json::Value* settings = member(value, "settings")) provider.settings = *settings;
  read_faults(provider, value);
  return provider;
}

LogLevel read_level(const std::string& name) {
  if (name == "debug") return LogLevel::debug;
  if (name == "warn") return LogLevel::warn;
  if (name == "error") return LogLevel::error;
  return name == "off" ? LogLevel::off : LogLevel::info;
}

void read_document(HostConfig& config) {
  const json::Value& document = config.document;
  if (const json::Value* plugins = member(document, "plugins")) {
    config.plugins = read_plugins(*plugins, config.directory);
  }
  if (const json::Value* providers = member(document, "providers")) {
    for (const auto& [name, value] : providers->as_object()) {
      const std::string pointer = "/providers/" + json::escape_pointer(name);
      config.providers.emplace(name, read_provider(name, pointer, value));
    }
  }
  if (const json::Value* sandbox = member(document, "sandbox")) {
    const std::string name = text_of(member(*sandbox, "provider"));
    const auto shared = config.providers.find(name);
    const bool own = sandbox->find("options") != nullptr || sandbox->find("settings") != nullptr;
    const bool use_shared = !own && shared != config.providers.end();
    config.sandbox = use_shared ? shared->second : read_provider(name, "/sandbox", *sandbox);
    read_faults(*config.sandbox, *sandbox);
  }
  if (const json::Value* secrets = member(document, "secrets")) {
    for (const auto& [name, value] : secrets->as_object())
      config.secrets.emplace(name, value.as_string());
  }
  if (const json::Value* session = member(document, "session")) {
    const std::string store = text_of(member(*session, "store"));
    if (!store.empty()) config.session_store = absolute_path(config.directory, store);
  }
  if (const json::Value* log = member(document, "log")) {
    config.log_level = read_level(text_of(member(*log, "level")));
    if (text_of(member(*log, "format")) == "json") config.log_format = LogFormat::json;
  }
}

bool concerns(const ConfigIssue& issue, const std::string& pointer) {
  return issue.issue.pointer.compare(0, pointer.size(), pointer) == 0;
}

bool is_provider(const json::Value& value) {
  const auto good = [&](const char* name) {
    const json::Value* part = member(value, name);
    return part == nullptr || part->is_object();
  };
  return value.is_object() && good("options") && good("settings");
}

// A mistake in what a plugin is allowed, such as a grant that does not exist.
bool is_in_allow(const std::string& pointer) {
  constexpr std::string_view policies = "/plugins/policies/";
  if (pointer.compare(0, policies.size(), policies) != 0) return false;
  const auto member = pointer.find('/', policies.size());
  constexpr std::string_view allow = "/allow/";
  return member != pointer.npos && pointer.compare(member, allow.size(), allow) == 0;
}

json::Value without(const json::Value& value, const std::string& at,
                    const std::set<std::string>& left_out) {
  if (value.is_object()) {
    json::Object out;
    for (const auto& [name, item] : value.as_object()) {
      const auto pointer = at + '/' + json::escape_pointer(name);
      if (left_out.count(pointer) == 0) out.set(name, without(item, pointer, left_out));
    }
    return out;
  }
  if (!value.is_array()) return value;
  json::Array out;
  for (std::size_t i = 0; i < value.as_array().size(); ++i) {
    const auto pointer = at + '/' + std::to_string(i);
    if (left_out.count(pointer) == 0)
      out.push_back(without(value.as_array()[i], pointer, left_out));
  }
  return out;
}

// What is left when wrong grants are, and nothing else is wrong: with a pin or a user that cannot
// be read, a plugin would run less guarded than its author meant it to.
json::Value without_wrong_grants(const json::Value& plugins,
                                 const std::vector<ConfigIssue>& issues) {
  std::set<std::string> wrong;
  for (const ConfigIssue& issue : issues) {
    if (!concerns(issue, "/plugins")) continue;
    if (!is_in_allow(issue.issue.pointer)) return nullptr;
    wrong.insert(issue.issue.pointer);
  }
  json::Object kept;
  kept.set("plugins", without(plugins, "/plugins", wrong));
  return host_schema().validate(kept).empty() ? *kept.find("plugins") : json::Value(nullptr);
}

// Of a document with issues: the parts that they leave alone. Mistakes inside options and settings
// are of no concern here, their reader takes any object.
void read_draft(HostConfig& config, const std::vector<ConfigIssue>& issues) {
  const json::Value document = config.document;
  json::Object kept;
  for (const auto& [name, value] : document.as_object()) {
    const auto concerned = [&, pointer = '/' + name](const ConfigIssue& issue) {
      return concerns(issue, pointer);
    };
    if (name == "plugins")
      if (auto plugins = without_wrong_grants(value, issues); !plugins.is_null())
        kept.set(name, std::move(plugins));
    if (name == "secrets" && std::none_of(issues.begin(), issues.end(), concerned))
      kept.set(name, value);
    const bool named = !text_of(member(value, "provider")).empty();
    if (name == "sandbox" && named && is_provider(value)) kept.set(name, value);
    if (name != "providers" || !value.is_object()) continue;
    json::Object providers;
    for (const auto& [provider, configured] : value.as_object())
      if (is_provider(configured)) providers.set(provider, configured);
    kept.set(name, std::move(providers));
  }
  config.document = std::move(kept);
  read_document(config);
  config.document = document;
}

// Mistakes that JSON Schema cannot explain well.
class Checker {
 public:
  Checker(HostConfig& config, const HostConfigSections& sections)
      : config_(config), sections_(sections) {}

  std::vector<ConfigIssue> run() {
    json::Value own = take_sections();
    for (Issue& issue : host_schema().validate(own))
      schema_issue(std::move(issue));
    const json::Value* sandbox = own.find("sandbox");
    if (sandbox != nullptr) provider(*sandbox, "/sandbox");
    const json::Value* providers = own.find("providers");
    if (providers != nullptr && providers->is_object()) {
      for (const auto& [name, value] : providers->as_object()) {
        provider(value, "/providers/" + json::escape_pointer(name));
      }
      if (sandbox != nullptr) given_twice(*sandbox, *providers);
    }
    return std::move(issues_);
  }

 private:
  json::Value take_sections() {
    json::Value own = config_.document;
    if (!own.is_object()) return own;
    for (const auto& [name, schema] : sections_) {
      const json::Value* value = own.find(name);
      if (value == nullptr) continue;
      const std::string prefix = '/' + json::escape_pointer(name);
      for (Issue& issue : schema->validate(*value)) {
        const bool secret = schema->is_secret(issue.pointer);
        issue.pointer.insert(0, prefix);
        add(std::move(issue), secret);
      }
      config_.sections[name] = *value;
      own.as_object().erase(name);
    }
    return own;
  }

  void schema_issue(Issue issue) {
    // The root's own list does not know the sections of the host.
    const bool top =
        issue.keyword == "additionalProperties" && issue.pointer.find('/', 1) == std::string::npos;
    if (top) {
      for (const auto& [name, schema] : sections_)
        issue.allowed += ", " + name;
    }
    if (issue.pointer.find("/when/") != std::string::npos &&
        issue.pointer.substr(issue.pointer.size() - 11) == "factoryName") {
      issue.message = "\"factoryName\" cannot choose: names can be edited and are not unique";
      issue.suggestion = "use \"factoryId\"";
    }
    const bool secret = host_schema().is_secret(issue.pointer);
    add(std::move(issue), secret);
  }

  void provider(const json::Value& value, const std::string& pointer) {
    session_fields(value, pointer);
    faults(value, pointer);
  }

  // What the schema of the file has not refused already: rules that cannot be carried out, and one
  // member without the other.
  void faults(const json::Value& provider, const std::string& pointer) {
    const json::Value* wrap = provider.find("wrap");
    const json::Value* faults = provider.find("faults");
    if (wrap != nullptr && faults == nullptr)
      add({pointer + "/wrap", "required", "nothing to inject: \"faults\" is missing", {}, {}},
          false);
    if (faults != nullptr && wrap == nullptr)
      add({pointer + "/faults",
           "additionalProperties",
           "these faults have no effect",
           {},
           "add \"wrap: fault\", or remove them"},
          false);
    if (faults == nullptr) return;
    const std::string place = pointer + "/faults";
    const bool refused = std::any_of(issues_.begin(), issues_.end(), [&](const ConfigIssue& known) {
      return concerns(known, place + "/") || known.issue.pointer == place;
    });
    if (refused) return;
    for (Issue& issue : check_faults(*faults)) {
      issue.pointer.insert(0, place);
      add(std::move(issue), false);
    }
  }

  // The host fills these in for each session.
  void session_fields(const json::Value& provider, const std::string& pointer) {
    const json::Value* options = provider.find("options");
    if (options == nullptr || !options->is_object()) return;
    for (const char* name : {"id", "sandboxId", "sessionId", "template"}) {
      const json::Value* value = options->find(name);
      // An object of template options, such as buildEnv, belongs to the host.
      const bool host_form =
          std::string_view(name) == "template" && value != nullptr && value->is_object();
      if (value == nullptr || host_form) continue;
      add({pointer + "/options/" + name,
           "additionalProperties",
           '"' + std::string(name) + "\" is set for each session and cannot be an option",
           {},
           {}},
          false);
    }
  }

  void given_twice(const json::Value& sandbox, const json::Value& providers) {
    const json::Value* shared = providers.find(text_of(sandbox.find("provider")));
    if (shared == nullptr) return;
    for (const char* name : {"options", "settings", "faults"}) {
      if (sandbox.find(name) == nullptr || shared->find(name) == nullptr) continue;
      add({std::string("/sandbox/") + name,
           "additionalProperties",
           std::string(name) + " of this provider are given twice, here and under \"providers\"",
           {},
           "keep one of them"},
          false);
    }
  }

  void add(Issue issue, bool secret) {
    issues_.push_back(cd::place_issue(config_.source, std::move(issue), secret));
  }

  HostConfig& config_;
  const HostConfigSections& sections_;
  std::vector<ConfigIssue> issues_;
};

HostConfigResult refused(const std::string& file, std::string_view text, SourcePosition at,
                         std::string message) {
  HostConfigResult out;
  out.report = format_diagnostic(file, text, at, message);
  out.issues.push_back({Issue{"", "", std::move(message), {}, {}}, at, true});
  return out;
}

}  // namespace

const ProviderConfig* HostConfig::find_provider(std::string_view name) const noexcept {
  if (sandbox && sandbox->name == name) return &*sandbox;
  for (const auto& [key, provider] : providers) {
    if (key == name) return &provider;
  }
  return nullptr;
}

HostConfigResult parse_host_config(std::string text, std::string file,
                                   const std::filesystem::path& directory,
                                   const HostConfigSections& sections) {
  YamlResult read = parse_yaml(text);
  if (!read) return refused(file, text, read.error.at, read.error.message);
  auto config = std::make_shared<HostConfig>();
  config->file = std::move(file);
  config->directory = directory;
  config->text = std::move(text);
  config->document = std::move(read.value);
  config->source = std::move(read.source);
  HostConfigResult out;
  out.issues = Checker(*config, sections).run();
  if (out.issues.empty()) {
    read_document(*config);
    out.config = std::move(config);
    out.draft = out.config;
  } else {
    out.report = cd::format_issues(config->file, config->text, out.issues);
    if (config->document.is_object()) read_draft(*config, out.issues);
    out.draft = std::move(config);
  }
  return out;
}

HostConfigResult load_host_config(const std::filesystem::path& path,
                                  const HostConfigSections& sections) {
  constexpr std::size_t max_bytes = 1U << 20;
  std::string reason;
  auto text = cd::read_regular_file(path, max_bytes + 1, reason);
  if (!text) return refused(path.string(), {}, {}, "the configuration cannot be read: " + reason);
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::absolute(path, error).parent_path();
  return parse_host_config(std::move(*text), path.string(), directory, sections);
}

std::string format_config_issues(const HostConfig& config, std::vector<ConfigIssue> issues) {
  return cd::format_issues(config.file, config.text, std::move(issues));
}

}  // namespace sandforge
