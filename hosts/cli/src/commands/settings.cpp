#include "sandforge/settings.hpp"

#include "commands/commands.hpp"
#include "exit_codes.hpp"

namespace sandforge::cli {
namespace {

json::Value stored_settings(const ConfigPtr& config, const std::string& provider) {
  const auto* configured = config ? config->find_provider(provider) : nullptr;
  return configured != nullptr ? configured->settings : json::Value(nullptr);
}

}  // namespace

int settings_command(App& app, const SettingsArguments& arguments) {
  const auto provider = app.known_provider(arguments.provider);
  app.check_configured(provider);
  const auto config = app.config();
  const auto setup = app.open_provider(provider, config);
  const auto effective = effective_settings(*setup.settings_schema,
                                            stored_settings(config, provider), setup.host_defaults);
  if (!effective.issues.empty())
    throw_error(Error(Status::invalid,
                      "the settings are not valid:\n" + format_issues(effective.issues),
                      "settings.invalid"));
  json::Object values;
  std::vector<std::vector<std::string>> rows;
  for (const auto& setting : effective.origins) {
    const auto* value = effective.document.find(setting.key);
    json::Object entry;
    entry.set("value", value != nullptr ? *value : json::Value(nullptr));
    entry.set("origin", to_string(setting.origin));
    values.set(setting.key, std::move(entry));
    rows.push_back(
        {setting.key, value != nullptr ? json::write(*value) : "-", to_string(setting.origin)});
  }
  if (app.terminal().json()) {
    json::Object out;
    out.set("provider", provider);
    out.set("settings", std::move(values));
    return app.terminal().exit_code_after(app.terminal().print_json(out));
  }
  if (rows.empty()) return app.terminal().exit_code_after(app.terminal().print("No settings.\n"));
  return app.terminal().exit_code_after(
      app.terminal().print_table({"SETTING", "VALUE", "ORIGIN"}, rows));
}

}  // namespace sandforge::cli
