#include "default_sandbox.hpp"

#include "sandforge/support/json.hpp"

namespace sandforge::cli {
namespace {

using Env = std::function<std::optional<std::string>(const std::string&)>;

[[noreturn]] void bad_table(const std::string& why) {
  throw_error(Error(Status::internal, "the table of default sandboxes is not valid: " + why,
                    "cli.bad_table"));
}

bool is_set(const Env& env, const std::string& name) {
  const auto value = env(name);
  return value && value->find_first_not_of(" \t\r\n") != std::string::npos;
}

const json::Value& member(const json::Value& object, const char* name) {
  const auto* value = object.find(name);
  if (value == nullptr) bad_table(std::string("no ") + name);
  return *value;
}

bool in_development(const json::Value& table, const DefaultSandboxInput& input) {
  if (input.development) return true;
  for (const auto& [name, wanted] : member(table, "development").as_object())
    if (input.env(name) == std::optional<std::string>(wanted.as_string())) return true;
  return false;
}

bool holds(const json::Value& rule, const DefaultSandboxInput& input, bool development) {
  if (const auto* wanted = rule.find("development"); wanted != nullptr)
    if (wanted->as_bool() != development) return false;
  for (const auto& name : member(rule, "anyOf").as_array())
    if (is_set(input.env, name.as_string())) return true;
  return false;
}

std::string missing(const json::Value& rule, const Env& env) {
  std::string names;
  if (const auto* needs = rule.find("needs"); needs != nullptr)
    for (const auto& name : needs->as_array())
      if (!is_set(env, name.as_string()))
        names += (names.empty() ? "" : " and ") + name.as_string();
  return names;
}

}  // namespace

DefaultSandbox choose_default_sandbox(const DefaultSandboxInput& input, const char* table_text) {
  DefaultSandbox out;
  if (input.explicit_provider) {
    out.provider = *input.explicit_provider;
    out.why = "it was named";
    return out;
  }
  const auto table = json::parse(table_text);
  if (!table) bad_table(table.error.message);
  const bool development = in_development(table.value, input);
  for (const auto& rule : member(table.value, "rules").as_array()) {
    if (!holds(rule, input, development)) continue;
    const auto& provider = member(rule, "provider").as_string();
    out.why = member(rule, "why").as_string();
    if (const auto names = missing(rule, input.env); !names.empty()) {
      out.warning = "sandboxes are off: " + out.why + ", but provider '" + provider + "' needs " +
                    names + " as well";
    } else if (!input.installed(provider)) {
      out.warning = "sandboxes are off: " + out.why + ", but the plugin of provider '" + provider +
                    "' is not installed";
    } else {
      out.provider = provider;
    }
    return out;
  }
  out.why = "no provider is named, and no platform credentials are set";
  return out;
}

}  // namespace sandforge::cli
