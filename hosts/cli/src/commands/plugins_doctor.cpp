#include "commands/commands.hpp"
#include "exit_codes.hpp"

namespace sandforge::cli {

int plugins_doctor_command(App& app, const PluginsDoctorArguments&) {
  auto& registry = app.registry();
  registry.load_all();
  const auto report = registry.report();
  const bool shown = app.terminal().json()
                         ? app.terminal().print_json(to_json(report))
                         : app.terminal().print_text(
                               report.to_text() +
                               "Plugins run inside this process, with all its rights: install "
                               "only those that you trust.\n");
  if (!shown) return app.terminal().exit_code_after(false);
  return report.refused() == 0 ? kOk : kProblems;
}

}  // namespace sandforge::cli
