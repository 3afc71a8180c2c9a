#include <algorithm>

#include "commands/commands.hpp"
#include "exit_codes.hpp"

namespace sandforge::cli {

namespace {

constexpr const char* kTrust =
    "A process of its own contains crashes and mistakes of a plugin, not malice: it runs as this "
    "user,\nor as the user that plugins.policies names. Inside this process a plugin has all its "
    "rights.\nInstall only plugins that you trust.\n";

using MissingGrants = std::vector<App::MissingGrant>;

json::Value to_json(const LoadReport& report, const MissingGrants& missing,
                    const std::vector<std::string>& quarantined, std::size_t cleared) {
  json::Value out = sandforge::to_json(report);
  json::Array grants;
  for (const auto& one : missing) {
    json::Object entry;
    entry.set("plugin", one.plugin);
    entry.set("service", one.service);
    entry.set("message", one.message());
    grants.emplace_back(std::move(entry));
  }
  out.as_object().set("notGranted", std::move(grants));
  out.as_object().set("quarantined", json::Array(quarantined.begin(), quarantined.end()));
  out.as_object().set("cleared", cleared);
  return out;
}

std::string to_text(const LoadReport& report, const MissingGrants& missing,
                    const std::vector<std::string>& quarantined, std::size_t cleared) {
  std::string out = report.to_text();
  for (const auto& one : missing)
    out += "\nnot granted: " + one.message() + "\n";
  if (cleared > 0)
    out += std::to_string(cleared) + (cleared == 1 ? " plugin" : " plugins") +
           " let out of quarantine\n";
  for (const std::string& line : quarantined)
    out += "in quarantine: " + line + "\n";
  return out + kTrust;
}

}  // namespace

int plugins_doctor_command(App& app, const PluginsDoctorArguments& arguments) {
  auto& registry = app.registry();
  const std::size_t cleared = arguments.clear_quarantine ? registry.clear_quarantine() : 0;
  registry.load_all();
  const auto report = registry.report();
  const auto quarantined = registry.quarantined();
  const auto missing = app.missing_grants(app.config());
  const bool shown =
      app.terminal().json()
          ? app.terminal().print_json(to_json(report, missing, quarantined, cleared))
          : app.terminal().print_text(to_text(report, missing, quarantined, cleared));
  if (!shown) return app.terminal().exit_code_after(false);
  // Of a plugin that no configuration uses it is no problem yet.
  const bool lacks = std::any_of(missing.begin(), missing.end(),
                                 [](const App::MissingGrant& one) { return one.used; });
  return report.refused() == 0 && !lacks ? kOk : kProblems;
}

}  // namespace sandforge::cli
