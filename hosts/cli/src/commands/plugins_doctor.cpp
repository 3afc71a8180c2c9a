#include "commands/commands.hpp"
#include "exit_codes.hpp"

namespace sandforge::cli {

namespace {

constexpr const char* kTrust =
    "A process of its own contains crashes and mistakes of a plugin, not malice: it runs as this "
    "user,\nor as the user that plugins.policies names. Inside this process a plugin has all its "
    "rights.\nInstall only plugins that you trust.\n";

json::Value to_json(const LoadReport& report, const std::vector<std::string>& quarantined,
                    std::size_t cleared) {
  json::Value out = sandforge::to_json(report);
  out.as_object().set("quarantined", json::Array(quarantined.begin(), quarantined.end()));
  out.as_object().set("cleared", cleared);
  return out;
}

std::string to_text(const LoadReport& report, const std::vector<std::string>& quarantined,
                    std::size_t cleared) {
  std::string out = report.to_text();
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
  const bool shown = app.terminal().json()
                         ? app.terminal().print_json(to_json(report, quarantined, cleared))
                         : app.terminal().print_text(to_text(report, quarantined, cleared));
  if (!shown) return app.terminal().exit_code_after(false);
  return report.refused() == 0 ? kOk : kProblems;
}

}  // namespace sandforge::cli
