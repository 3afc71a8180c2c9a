#include "commands.hpp"
#include "exit_codes.hpp"
#include "output.hpp"
#include "sandforge/settings.hpp"

namespace sandforge::cli {
namespace {

json::Value capabilities(const Description& description) {
  json::Object builds;
  builds.set("available", description.has_builds);
  builds.set("history", description.has_build_history);
  json::Object out;
  out.set("template", description.has_template);
  out.set("builds", std::move(builds));
  return out;
}

CompiledSchemaPtr settings_schema(const Description& description) {
  auto compiled = compile_schema(description.settings_schema, SchemaProfile::settings);
  if (!compiled) throw Fatal(kFailed, format_issues(compiled.issues));
  return compiled.schema;
}

// Everything about one configured provider that only its plugin can tell.
void check_configured(App& app, const HostConfig& config, const ProviderConfig& provider,
                      std::vector<ConfigIssue>& issues, std::string& notes) {
  const auto info = app.registry().find(provider.name);
  if (!info) {
    notes += "note: no plugin for the provider '" + provider.name +
             "' is installed; its options are not checked\n";
    return;
  }
  const auto options = compile_schema(info->options_schema, SchemaProfile::options);
  if (!options) throw Fatal(kFailed, format_issues(options.issues));
  CompiledSchemaPtr settings;
  if (check_provider(config, provider, *options.schema).empty()) {
    const auto resolved = resolve_options(config, provider, *options.schema, host_references());
    if (!resolved.issues.empty()) {
      issues.insert(issues.end(), resolved.issues.begin(), resolved.issues.end());
      return;
    }
    const auto opened = app.registry().open(provider.name, resolved.options.is_object()
                                                               ? resolved.options.as_object()
                                                               : json::Object());
    settings = settings_schema(describe(opened));
  }
  auto found = check_provider(config, provider, *options.schema, settings.get());
  issues.insert(issues.end(), found.begin(), found.end());
}

}  // namespace

int providers(App& app) {
  std::vector<std::vector<std::string>> rows = {{"PROVIDER", "PLUGIN", "VERSION", "DESCRIPTION"}};
  json::Array list;
  for (const auto& info : app.registry().list()) {
    json::Object object;
    object.set("name", info.name);
    object.set("displayName", info.display_name);
    object.set("description", info.description);
    object.set("path", info.path.string());
    object.set("version", info.version);
    list.emplace_back(std::move(object));
    rows.push_back({info.name, info.plugin.empty() ? "(built in)" : info.plugin, info.version,
                    info.description});
  }
  if (app.options().json)
    print_json(list);
  else
    print(table(rows));
  return kOk;
}

int describe_provider(App& app, const std::optional<std::string>& named) {
  const auto name = app.choose_provider(named);
  const auto description = app.describe(name);
  json::Object out;
  out.set("provider", name);
  out.set("settingsSchema", description.settings_schema);
  out.set("capabilities", capabilities(description));
  for (const auto& [key, value] : description.describe)
    out.set(key, value);
  print_json(out);
  return kOk;
}

int settings_effective(App& app, const std::optional<std::string>& named) {
  const auto name = app.choose_provider(named);
  const auto schema = settings_schema(app.describe(name));
  const auto* provider = app.config() != nullptr ? app.config()->find_provider(name) : nullptr;
  json::Value defaults;
  if (provider != nullptr)
    if (const auto* value = provider->options.find("defaults")) defaults = *value;
  const auto effective = effective_settings(*schema, app.configured_settings(name), defaults);
  if (!effective.issues.empty()) throw Fatal(kUsage, format_issues(effective.issues));
  std::vector<std::vector<std::string>> rows = {{"SETTING", "ORIGIN", "VALUE"}};
  json::Array list;
  for (const auto& setting : effective.origins) {
    const auto* value = effective.document.find(setting.key);
    const bool secret = schema->is_secret("/" + json::escape_pointer(setting.key));
    json::Object object;
    object.set("key", setting.key);
    object.set("origin", to_string(setting.origin));
    if (secret) {
      json::Object set;
      set.set("set", true);
      object.set("value", std::move(set));
    } else {
      object.set("value", *value);
    }
    rows.push_back({setting.key, to_string(setting.origin), secret ? "***" : json::write(*value)});
    list.emplace_back(std::move(object));
  }
  if (app.options().json)
    print_json(list);
  else
    print(table(rows));
  return kOk;
}

int config_check(App& app, const std::string& file) {
  const auto loaded = load_host_config(file);
  std::vector<ConfigIssue> issues = loaded.issues;
  std::string report = loaded.report;
  std::string notes;
  if (loaded) {
    if (loaded.config->sandbox)
      check_configured(app, *loaded.config, *loaded.config->sandbox, issues, notes);
    for (const auto& [name, provider] : loaded.config->providers)
      check_configured(app, *loaded.config, provider, issues, notes);
    report = format_config_issues(*loaded.config, issues);
  }
  if (app.options().json) {
    json::Array list;
    for (const auto& issue : issues) {
      json::Object object;
      object.set("line", static_cast<long long>(issue.at.line));
      object.set("column", static_cast<long long>(issue.at.column));
      object.set("pointer", issue.issue.pointer);
      object.set("message", issue.issue.message);
      if (!issue.issue.suggestion.empty()) object.set("suggestion", issue.issue.suggestion);
      list.emplace_back(std::move(object));
    }
    json::Object out;
    out.set("file", file);
    out.set("valid", issues.empty() && loaded);
    out.set("issues", std::move(list));
    print_json(out);
  } else {
    print(notes);
    print(issues.empty() && loaded ? file + ": valid\n" : report);
  }
  return issues.empty() && loaded ? kOk : kUsage;
}

int plugins_doctor(App& app) {
  const auto report = app.registry().load_all();
  if (app.options().json)
    print_json(to_json(report));
  else
    print(report.to_text());
  return report.refused() == 0 ? kOk : kFailed;
}

}  // namespace sandforge::cli
