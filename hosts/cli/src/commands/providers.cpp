#include "commands/commands.hpp"
#include "exit_codes.hpp"

namespace sandforge::cli {
namespace {

json::Object to_object(const ProviderInfo& provider) {
  json::Object out;
  out.set("provider", provider.name);
  out.set("displayName", provider.display_name);
  out.set("description", provider.description);
  if (!provider.plugin.empty()) {
    out.set("plugin", provider.plugin);
    out.set("version", provider.version);
    out.set("path", provider.path.native());
    out.set("origin", provider.origin);
  }
  out.set("optionsSchema", provider.options_schema);
  json::Array env;
  for (const auto& name : provider.env)
    env.emplace_back(name);
  out.set("env", std::move(env));
  return out;
}

}  // namespace

int providers_command(App& app, const ProvidersArguments&) {
  const auto providers = app.registry().list();
  const auto refused = app.scan_report().refused();
  if (app.terminal().json()) {
    json::Array out;
    for (const auto& provider : providers)
      out.push_back(to_object(provider));
    return app.terminal().exit_code_after(app.terminal().print_json(out));
  }
  if (refused != 0)
    app.terminal().warn(std::to_string(refused) + (refused == 1 ? " plugin is" : " plugins are") +
                        " not usable; see: " + app.doctor_command(app.config()));
  std::vector<std::vector<std::string>> rows;
  for (const auto& provider : providers)
    rows.push_back({provider.name, provider.version.empty() ? "-" : provider.version,
                    provider.plugin.empty() ? "(built in)" : provider.path.native(),
                    provider.description});
  return app.terminal().exit_code_after(
      app.terminal().print_table({"PROVIDER", "VERSION", "PLUGIN", "DESCRIPTION"}, rows));
}

}  // namespace sandforge::cli
