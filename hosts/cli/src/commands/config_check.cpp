#include <algorithm>
#include <set>
#include <utility>

#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "sandforge/support/suggest.hpp"

namespace sandforge::cli {
namespace {

struct Checked {
  std::vector<ConfigIssue> issues;
  std::vector<std::string> unchecked;    // why something could not be looked at
  std::vector<std::string> warnings;     // what is no mistake, and perhaps not meant
  std::set<std::filesystem::path> told;  // plugins of which one of them says that they are refused
};

std::string at(const HostConfig& config, const std::string& pointer) {
  const auto place = config.source.value(pointer);
  if (!place) return config.file + ": ";
  return config.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": ";
}

bool is_same_path(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto plain = [](const std::filesystem::path& path) {
    const auto normal = path.lexically_normal();
    return normal.has_filename() ? normal : normal.parent_path();
  };
  return plain(a) == plain(b);
}

// The settings schema is the opened provider's; opening one starts nothing.
CompiledSchemaPtr open_without_options(App& app, const ProviderConfig& provider, Checked& out) {
  try {
    return app.open_provider(provider.name, nullptr).settings_schema;
  } catch (const Exception& failure) {
    out.unchecked.push_back("the settings of '" + provider.name +
                            "' were not checked: " + failure.error().message);
    return nullptr;
  }
}

// A provider that names the option which it refuses has found a mistake; everything else, such as a
// variable that is not set here, may be right where the configuration is used.
void tell_failed_open(const HostConfig& config, const ProviderConfig& provider, const Error& error,
                      Checked& out) {
  const auto* pointer = error.details.find("pointer");
  const auto named = pointer != nullptr && pointer->is_string() && error.code == Status::invalid
                         ? provider.pointer + "/options" + pointer->as_string()
                         : std::string();
  if (!named.empty() && config.document.at_pointer(named) != nullptr) {
    Issue issue{named, "provider", error.message, {}, {}};
    out.issues.push_back({std::move(issue), config.source.value(named), false});
  } else if (error.reason == "config.invalid") {
    out.unchecked.push_back("the options of '" + provider.name +
                            "' were not tried out: " + error.message);
  } else {
    out.unchecked.push_back(at(config, provider.pointer) + "the provider '" + provider.name +
                            "' does not open: " + error.message);
  }
}

CompiledSchemaPtr settings_schema(App& app, const ConfigPtr& config, const ProviderConfig& provider,
                                  Checked& out) {
  try {
    return app.open_provider(provider.name, config).settings_schema;
  } catch (const Exception& failure) {
    tell_failed_open(*config, provider, failure.error(), out);
  }
  try {
    return app.open_provider(provider.name, nullptr).settings_schema;
  } catch (const Exception&) {
    return nullptr;  // told already: the options do not matter
  }
}

std::string did_you_mean(const std::string& name, const std::vector<ProviderInfo>& installed) {
  std::vector<std::string> names;
  for (const auto& provider : installed)
    names.push_back(provider.name);
  const auto nearest = nearest_name(name, names);
  return nearest ? ", did you mean '" + *nearest + "'?" : std::string();
}

// Of a provider that is not there: the plugins that were found and are refused.
std::string refused_plugins(const LoadReport& report, const std::string& doctor, Checked& checked) {
  std::string out;
  for (const auto& attempt : report.attempts) {
    if (attempt.usable()) continue;
    out += "\n  refused: " + attempt.path.native() + ": " + attempt.message;
    checked.told.insert(attempt.path);
  }
  return out.empty() ? out : out + "\n  see: " + doctor;
}

// The schema of the file and that of the provider may refuse the same value.
bool is_known(const std::vector<ConfigIssue>& issues, const ConfigIssue& issue) {
  return std::any_of(issues.begin(), issues.end(), [&](const ConfigIssue& known) {
    return known.issue.pointer == issue.issue.pointer;
  });
}

// Of what the schema of the file refuses nothing is opened: it is not known what it is.
bool is_concerned(const std::vector<ConfigIssue>& issues, const ProviderConfig& provider) {
  const auto below = provider.pointer + "/";
  return std::any_of(issues.begin(), issues.end(), [&](const ConfigIssue& issue) {
    return issue.issue.pointer.compare(0, below.size(), below) == 0;
  });
}

// With a mistake there, the plugins of the configuration were not looked for, or not all of them.
bool concern_plugins(const std::vector<ConfigIssue>& issues) {
  return std::any_of(issues.begin(), issues.end(), [](const ConfigIssue& issue) {
    const auto& pointer = issue.issue.pointer;
    return pointer == "/plugins" || pointer.compare(0, 9, "/plugins/") == 0;
  });
}

std::optional<ProviderInfo> find_provider(App& app, const ConfigPtr& config,
                                          const std::string& name, Checked& checked) {
  auto& unchecked = checked.unchecked;
  try {
    auto& registry = app.registry(config);
    auto info = registry.find(name);
    if (!info && concern_plugins(checked.issues)) {
      unchecked.push_back("the provider '" + name +
                          "' was not found: the mistakes under plugins come first");
    } else if (!info) {
      unchecked.push_back("the provider '" + name + "' is not installed" +
                          did_you_mean(name, registry.list()) +
                          refused_plugins(registry.report(), app.doctor_command(config), checked));
    }
    return info;
  } catch (const Exception& failure) {
    unchecked.push_back("the provider '" + name + "' was not looked for: " + failure.what());
    return std::nullopt;
  }
}

// "${NAME}" inside a longer text: as a whole it is refused where nothing resolves it.
void warn_of_literals(const HostConfig& config, const CompiledSchema& schema,
                      const std::string& options, const json::Value& value,
                      const std::string& pointer, Checked& out) {
  if (pointer == "/env" || (!pointer.empty() && schema.is_secret(pointer))) return;
  if (value.is_object()) {
    for (const auto& [name, item] : value.as_object())
      warn_of_literals(config, schema, options, item, pointer + '/' + json::escape_pointer(name),
                       out);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.as_array().size(); ++i)
      warn_of_literals(config, schema, options, value.as_array()[i],
                       pointer + '/' + std::to_string(i), out);
  } else if (value.is_string()) {
    const auto& text = value.as_string();
    const auto begin = text.find("${");
    const auto end = begin == text.npos ? text.npos : text.find('}', begin);
    if (end == text.npos || is_one_reference(text)) return;
    out.warnings.push_back(at(config, options + pointer) + options + pointer + ": \"" +
                           text.substr(begin, end + 1 - begin) +
                           "\" is taken literally: references are resolved in secrets and in env "
                           "only");
  }
}

void check_one(App& app, const ConfigPtr& config, const ProviderConfig& provider, Checked& out) {
  // A name that the schema of the file refuses is looked for nowhere.
  const auto at = provider.pointer + "/provider";
  if (std::any_of(out.issues.begin(), out.issues.end(),
                  [&](const ConfigIssue& issue) { return issue.issue.pointer == at; }))
    return;
  const auto info = find_provider(app, config, provider.name, out);
  if (!info) return;
  const auto options = compile_schema(info->options_schema, SchemaProfile::options);
  if (!options) {
    out.unchecked.push_back("the options schema of '" + provider.name + "' is not valid");
    return;
  }
  auto issues = check_provider(*config, provider, *options.schema);
  const bool good = issues.empty() && !is_concerned(out.issues, provider);
  const auto settings =
      good ? settings_schema(app, config, provider, out) : open_without_options(app, provider, out);
  if (settings) issues = check_provider(*config, provider, *options.schema, settings.get());
  for (auto& issue : issues)
    if (!is_known(out.issues, issue)) out.issues.push_back(std::move(issue));
  warn_of_literals(*config, *options.schema, provider.pointer + "/options", provider.options, "",
                   out);
}

// A pin that fits no file, or a policy that fits no plugin, protects nothing.
void check_plugins(App& app, const ConfigPtr& config, Checked& out) {
  if (config->plugins.policies.empty() && config->plugins.pins.empty()) return;
  try {
    for (const auto& unfit : app.unfit_policies(config)) {
      const auto pointer = "/plugins/policies/" + json::escape_pointer(unfit.name);
      Issue issue{pointer, "propertyNames", unfit.message(), {}, {}};
      out.issues.push_back({std::move(issue), config->source.key(pointer), true});
    }
  } catch (const Exception& failure) {
    const auto* pin = failure.error().details.find("pin");
    if (pin == nullptr || !pin->is_string())
      return out.unchecked.push_back("the plugins were not looked for: " + failure.error().message);
    std::string pointer = "/plugins/pins";
    for (const auto& [name, digest] : config->document.at_pointer(pointer)->as_object())
      if (name == pin->as_string() ||
          (config->directory / name).lexically_normal() == pin->as_string())
        pointer += '/' + json::escape_pointer(name);
    Issue issue{pointer, "propertyNames", failure.error().message, {}, {}};
    out.issues.push_back({std::move(issue), config->source.key(pointer), true});
  }
}

// What `paths` names and no host can use here may lie where the configuration is used; a folder may
// get its plugins later.
void check_paths(App& app, const ConfigPtr& config, Checked& out) {
  const auto& paths = config->plugins.paths;
  if (paths.empty()) return;
  try {
    const auto& report = app.registry(config).report();
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const auto pointer = "/plugins/paths/" + std::to_string(i);
      const auto tell = [&](std::vector<std::string>& to, const std::filesystem::path& found,
                            const std::string& message) {
        if (is_same_path(found, paths[i]))
          to.push_back(at(*config, pointer) + pointer + ": " + found.native() + ": " + message);
      };
      for (const auto& attempt : report.attempts)
        if (!attempt.usable() && out.told.count(attempt.path) == 0)
          tell(out.unchecked, attempt.path, attempt.message);
      for (const auto& note : report.notes)
        tell(out.warnings, note.path, note.message);
    }
  } catch (const Exception&) {
    // Whoever looked for the plugins before has said why that cannot be done.
  }
}

// What a provider of this configuration lacks, its first command would meet.
void check_grants(App& app, const ConfigPtr& config, Checked& out) {
  try {
    for (const auto& missing : app.missing_grants(config)) {
      if (!missing.used) continue;
      Issue issue{missing.pointer, "required", missing.message(), {}, {}};
      out.issues.push_back({std::move(issue), config->source.key(missing.pointer), true});
    }
  } catch (const Exception&) {
    // Whoever looked for the plugins before has said why that cannot be done.
  }
}

// A variable that is not set here may be where the configuration is used.
void check_secrets(const HostConfig& config, Checked& out) {
  for (const auto& [name, text] : config.secrets) {
    const auto resolved = resolve_reference(text, config.directory, host_references());
    if (!resolved.error.empty())
      out.unchecked.push_back(at(config, "/secrets/" + json::escape_pointer(name)) +
                              "the secret '" + name + "' cannot be read here: " + resolved.error);
  }
}

json::Object to_object(const ConfigIssue& issue) {
  json::Object out;
  out.set("pointer", issue.issue.pointer);
  out.set("message", issue.issue.message);
  if (!issue.issue.allowed.empty()) out.set("allowed", issue.issue.allowed);
  if (!issue.issue.suggestion.empty()) out.set("suggestion", issue.issue.suggestion);
  if (issue.at) {
    out.set("line", static_cast<long long>(issue.at.line));
    out.set("column", static_cast<long long>(issue.at.column));
  }
  return out;
}

json::Array to_array(const std::vector<std::string>& lines) {
  return {lines.begin(), lines.end()};
}

int answer(App& app, const std::string& file, const Checked& checked, const std::string& report) {
  const bool wrong = !checked.issues.empty();
  const int code = wrong ? kProblems : checked.unchecked.empty() ? kOk : kUnverified;
  if (app.terminal().json()) {
    json::Array list;
    for (const auto& issue : checked.issues)
      list.emplace_back(to_object(issue));
    json::Object out;
    out.set("file", file);
    // Not known where no mistake was found and not everything was looked at.
    out.set("valid", code == kUnverified ? json::Value(nullptr) : json::Value(!wrong));
    out.set("issues", std::move(list));
    out.set("unchecked", to_array(checked.unchecked));
    out.set("warnings", to_array(checked.warnings));
    if (!app.terminal().print_json(out)) return app.terminal().exit_code_after(false);
    return code;
  }
  for (const auto& note : checked.unchecked)
    app.terminal().warn(note);
  for (const auto& note : checked.warnings)
    app.terminal().warn(note);
  const auto text = wrong ? report
                          : file + ": no mistakes found" +
                                (code == kOk ? "\n" : ", but not everything was checked\n");
  if (!app.terminal().print_text(text)) return app.terminal().exit_code_after(false);
  return code;
}

}  // namespace

int config_check_command(App& app, const ConfigCheckArguments& arguments) {
  auto loaded = load_host_config(arguments.file);
  Checked checked;
  checked.issues = std::move(loaded.issues);
  if (!loaded.draft) return answer(app, arguments.file, checked, loaded.report);
  const auto& config = *loaded.draft;
  check_plugins(app, loaded.draft, checked);
  check_secrets(config, checked);
  if (config.sandbox) check_one(app, loaded.draft, *config.sandbox, checked);
  for (const auto& [name, provider] : config.providers)
    if (!config.sandbox || provider.pointer != config.sandbox->pointer)
      check_one(app, loaded.draft, provider, checked);
  check_paths(app, loaded.draft, checked);
  check_grants(app, loaded.draft, checked);
  std::stable_sort(checked.issues.begin(), checked.issues.end(),
                   [](const ConfigIssue& a, const ConfigIssue& b) {
                     return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
                   });
  return answer(app, arguments.file, checked, format_config_issues(config, checked.issues));
}

}  // namespace sandforge::cli
