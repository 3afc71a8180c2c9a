#include <algorithm>

#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "harmless.hpp"

namespace sandforge::cli {
namespace {

// The documented description first, then what this framework adds, under its own keys.
json::Object to_object(const ProviderInfo& provider, const Description& description) {
  json::Object builds;
  builds.set("available", description.has_builds);
  builds.set("history", description.has_build_history);
  json::Object capabilities;
  capabilities.set("template", description.has_template);
  capabilities.set("builds", std::move(builds));
  json::Object out;
  out.set("provider", provider.name);
  out.set("settingsSchema", description.settings_schema);
  out.set("capabilities", std::move(capabilities));
  for (const auto& [key, value] : description.describe)
    if (!out.contains(key)) out.set(key, value);
  json::Array features;
  for (const auto& feature : description.features)
    features.emplace_back(feature);
  out.set("features", std::move(features));
  out.set("displayName", provider.display_name);
  out.set("description", provider.description);
  out.set("optionsSchema", provider.options_schema);
  return out;
}

std::string text_of(const json::Value* value) {
  if (value == nullptr) return "-";
  return value->is_string() ? value->as_string() : json::write(*value);
}

// "small, large", or "1 to 8", or "-".
std::string allowed(const json::Value& property) {
  if (const auto* values = property.find("enum"); values != nullptr && values->is_array()) {
    std::string out;
    for (const auto& value : values->as_array())
      out += (out.empty() ? "" : ", ") + text_of(&value);
    return out;
  }
  const auto bounds = [&](const char* least, const char* most, const std::string& of) {
    const auto* low = property.find(least);
    const auto* high = property.find(most);
    if (low == nullptr && high == nullptr) return std::string();
    if (high == nullptr) return "from " + text_of(low) + of;
    if (low == nullptr) return "up to " + text_of(high) + of;
    return text_of(low) + " to " + text_of(high) + of;
  };
  auto out = bounds("minimum", "maximum", "");
  if (out.empty()) out = bounds("minLength", "maxLength", " characters");
  if (const auto* pattern = property.find("pattern"); pattern != nullptr)
    out += (out.empty() ? "fits " : ", fits ") + text_of(pattern);
  return out.empty() ? "-" : out;
}

// The title and the first sentence, as far as they fit into a row.
std::string one_line(const json::Value& property) {
  constexpr std::size_t most = 110;
  std::string text;
  for (const char* name : {"title", "description"}) {
    const auto* part = property.find(name);
    if (part == nullptr || !part->is_string() || part->as_string().empty()) continue;
    text += (text.empty() ? "" : ": ") + part->as_string();
  }
  text.resize(std::min(text.find('\n'), text.size()));
  if (const auto end = text.find(". "); end != text.npos) text.resize(end + 1);
  if (text.size() <= most) return text.empty() ? "-" : text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;  // not amid a character
  return text.substr(0, end) + "…";
}

std::string type_of(const json::Value& property) {
  const auto* type = property.find("type");
  if (type == nullptr || !type->is_array()) return type == nullptr ? "any" : text_of(type);
  std::string out;
  for (const auto& one : type->as_array())
    out += (out.empty() ? "" : " or ") + text_of(&one);
  return out;
}

// What an operator sets, below `options` of the configuration.
bool print_options(App& app, const json::Object& schema) {
  const auto* properties = schema.find("properties");
  if (properties == nullptr || !properties->is_object() || properties->as_object().empty())
    return app.terminal().print("No options.\n");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, property] : properties->as_object())
    rows.push_back({key, type_of(property), text_of(property.find("default")), one_line(property)});
  return app.terminal().print_table({"OPTION", "TYPE", "DEFAULT", "DESCRIPTION"}, rows);
}

bool print_settings(App& app, const json::Value& schema) {
  const auto* properties = schema.find("properties");
  if (properties == nullptr || !properties->is_object() || properties->as_object().empty())
    return app.terminal().print("No settings.\n");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, property] : properties->as_object())
    rows.push_back({key, text_of(property.find("type")), text_of(property.find("default")),
                    allowed(property),
                    property.find("title") != nullptr ? text_of(property.find("title"))
                                                      : text_of(property.find("description"))});
  return app.terminal().print_table({"SETTING", "TYPE", "DEFAULT", "ALLOWED", "TITLE"}, rows);
}

std::string yes_or_no(bool value) {
  return value ? "yes" : "no";
}

}  // namespace

int describe_command(App& app, const DescribeArguments& arguments) {
  const auto name = app.known_provider(arguments.provider);
  const auto setup = app.open_provider(name, app.config());
  const auto& description = setup.description;
  auto provider = app.registry().find(name);
  if (!provider) {
    provider.emplace();
    provider->name = name;
  }
  if (app.terminal().json())
    return app.terminal().exit_code_after(
        app.terminal().print_json(to_object(*provider, description)));
  std::string features;
  for (const auto& feature : description.features)
    features += "\n  " + harmless_line(feature);
  const auto builds = !description.has_builds
                          ? std::string("no")
                          : std::string(description.has_build_history ? "with history" : "yes");
  const auto about = provider->description.empty() ? "" : "\n" + provider->description;
  const auto head = app.terminal().bold(harmless_line(name)) + harmless_text(about) +
                    "\nTemplates: " + yes_or_no(description.has_template) + "\nBuilds: " + builds +
                    "\nFeatures:" + (features.empty() ? " none" : features) + "\n";
  return app.terminal().exit_code_after(
      app.terminal().print(head) && print_options(app, provider->options_schema) &&
      app.terminal().print("\n") && print_settings(app, description.settings_schema));
}

}  // namespace sandforge::cli
