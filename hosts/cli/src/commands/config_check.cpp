#include <algorithm>
#include <utility>

#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "sandforge/support/suggest.hpp"

namespace sandforge::cli {
namespace {

struct Checked {
  std::vector<ConfigIssue> issues;
  std::vector<std::string> unchecked;  // why something could not be looked at
};

// The settings schema is the opened provider's; opening one starts nothing. Without a configuration
// it is opened without options, because those that it gives have mistakes.
CompiledSchemaPtr settings_schema(App& app, const ConfigPtr& config, const std::string& name,
                                  std::vector<std::string>& unchecked) {
  try {
    return app.open_provider(name, config).settings_schema;
  } catch (const Exception& failure) {
    unchecked.push_back("the settings of '" + name +
                        "' were not checked: " + failure.error().message);
    return nullptr;
  }
}

std::string did_you_mean(const std::string& name, const std::vector<ProviderInfo>& installed) {
  std::vector<std::string> names;
  for (const auto& provider : installed)
    names.push_back(provider.name);
  const auto nearest = nearest_name(name, names);
  return nearest ? ", did you mean '" + *nearest + "'?" : std::string();
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

std::optional<ProviderInfo> find_provider(App& app, const ConfigPtr& config,
                                          const std::string& name,
                                          std::vector<std::string>& unchecked) {
  try {
    auto info = app.registry(config).find(name);
    if (!info) {
      unchecked.push_back("the provider '" + name + "' is not installed" +
                          did_you_mean(name, app.registry(config).list()));
    }
    return info;
  } catch (const Exception& failure) {
    unchecked.push_back("the provider '" + name + "' was not looked for: " + failure.what());
    return std::nullopt;
  }
}

void check_one(App& app, const ConfigPtr& config, const ProviderConfig& provider, Checked& out) {
  const auto info = find_provider(app, config, provider.name, out.unchecked);
  if (!info) return;
  const auto options = compile_schema(info->options_schema, SchemaProfile::options);
  if (!options) {
    out.unchecked.push_back("the options schema of '" + provider.name + "' is not valid");
    return;
  }
  auto issues = check_provider(*config, provider, *options.schema);
  const bool good = issues.empty() && !is_concerned(out.issues, provider);
  if (const auto settings =
          settings_schema(app, good ? config : nullptr, provider.name, out.unchecked))
    issues = check_provider(*config, provider, *options.schema, settings.get());
  for (auto& issue : issues)
    if (!is_known(out.issues, issue)) out.issues.push_back(std::move(issue));
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

int answer(App& app, const std::string& file, const std::vector<ConfigIssue>& issues,
           const std::string& report, const std::vector<std::string>& unchecked) {
  const bool good = issues.empty() && unchecked.empty();
  if (app.terminal().json()) {
    json::Array list, notes;
    for (const auto& issue : issues)
      list.emplace_back(to_object(issue));
    for (const auto& note : unchecked)
      notes.emplace_back(note);
    json::Object out;
    out.set("file", file);
    out.set("valid", issues.empty());
    out.set("issues", std::move(list));
    out.set("unchecked", std::move(notes));
    if (!app.terminal().print_json(out)) return app.terminal().exit_code_after(false);
    return good ? kOk : kProblems;
  }
  for (const auto& note : unchecked)
    app.terminal().warn(note);
  const auto text = issues.empty() ? file + ": no mistakes found" +
                                         (good ? "\n" : ", but not everything was checked\n")
                                   : report;
  if (!app.terminal().print_text(text)) return app.terminal().exit_code_after(false);
  return good ? kOk : kProblems;
}

}  // namespace

int config_check_command(App& app, const ConfigCheckArguments& arguments) {
  auto loaded = load_host_config(arguments.file);
  if (!loaded.draft) return answer(app, arguments.file, loaded.issues, loaded.report, {});
  Checked checked;
  checked.issues = std::move(loaded.issues);
  const auto& config = *loaded.draft;
  if (config.sandbox) check_one(app, loaded.draft, *config.sandbox, checked);
  for (const auto& [name, provider] : config.providers)
    if (!config.sandbox || provider.pointer != config.sandbox->pointer)
      check_one(app, loaded.draft, provider, checked);
  std::stable_sort(checked.issues.begin(), checked.issues.end(),
                   [](const ConfigIssue& a, const ConfigIssue& b) {
                     return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
                   });
  const auto report = format_config_issues(config, checked.issues);
  return answer(app, arguments.file, checked.issues, report, checked.unchecked);
}

}  // namespace sandforge::cli
