// What a person is told whose configuration or command line does not fit the plugins that are
// there.
#include <algorithm>

#include "app.hpp"
#include "sandforge/support/shell.hpp"
#include "sandforge/support/suggest.hpp"

namespace sandforge::cli {
namespace {

bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// The plugin that a mistyped name stands for, or that of a provider of this name.
std::string plugin_meant(const std::string& name, const LoadReport& report) {
  std::vector<std::string> known;
  for (const auto& attempt : report.attempts) {
    if (has(attempt.providers, name)) return attempt.plugin;
    if (!attempt.plugin.empty()) known.push_back(attempt.plugin);
  }
  return nearest_name(name, known).value_or("");
}

}  // namespace

std::string App::UnfitPolicy::message() const {
  return "the policy '" + name + "' fits no plugin that was found" +
         (suggestion.empty() ? "" : ", did you mean '" + suggestion + "'?");
}

std::vector<App::UnfitPolicy> App::unfit_policies(const ConfigPtr& config) {
  return unfit_policies_in(registry(config).report(), config);
}

std::vector<App::UnfitPolicy> App::unfit_policies_in(const LoadReport& report,
                                                     const ConfigPtr& config) {
  std::vector<UnfitPolicy> out;
  for (const auto& [name, policy] : config->plugins.policies) {
    // The name of one that was refused early is not known; its file is called like it.
    const auto fits = [&, &wanted = name](const LoadAttempt& attempt) {
      return attempt.plugin == wanted || (attempt.plugin.empty() && attempt.path.stem() == wanted);
    };
    if (std::none_of(report.attempts.begin(), report.attempts.end(), fits))
      out.push_back({name, plugin_meant(name, report)});
  }
  return out;
}

std::string App::doctor_command(const ConfigPtr& config) const {
  std::string out = "sandforge";
  const std::string file = config ? config->file : arguments_.config;
  if (!file.empty()) out += " --config " + shell_quote(file);
  for (const auto& path : arguments_.plugin_paths)
    out += " --plugin-path " + shell_quote(path);
  return out + " plugins doctor";
}

}  // namespace sandforge::cli
