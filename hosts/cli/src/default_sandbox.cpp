#include "default_sandbox.hpp"

namespace sandforge::cli {

const std::vector<DefaultRule>& default_rules() {
  static const std::vector<DefaultRule> rules = {
      {{"MASTRA_PLATFORM_ACCESS_TOKEN", "MASTRA_PLATFORM_SECRET_KEY"}, true, {}, "local"},
      {{"MASTRA_PLATFORM_ACCESS_TOKEN", "MASTRA_PLATFORM_SECRET_KEY"},
       false,
       {"MASTRA_PROJECT_ID", "MASTRA_ENVIRONMENT_ID"},
       "platform"},
  };
  return rules;
}

DefaultSandbox choose_sandbox(const DefaultSandboxInput& input) {
  if (input.explicit_provider) return {input.explicit_provider, {}};
  const auto is_set = [&](const char* name) {
    const auto value = input.variable(name);
    return value && !value->empty();
  };
  bool development = input.dev_flag;
  for (const char* name : {"SANDFORGE_ENV", "NODE_ENV"})
    if (const auto value = input.variable(name); value && *value == "development")
      development = true;

  for (const auto& rule : default_rules()) {
    bool applies = !rule.development || *rule.development == development;
    bool any = rule.any_of.empty();
    for (const char* name : rule.any_of)
      any = any || is_set(name);
    if (!applies || !any) continue;
    for (const char* name : rule.all_of)
      if (!is_set(name))
        return {std::nullopt, std::string("sandboxes are off: the provider '") + rule.provider +
                                  "' needs " + name + ", which is not set"};
    if (!input.installed(rule.provider))
      return {std::nullopt, std::string("sandboxes are off: no plugin for the provider '") +
                                rule.provider + "' is installed"};
    return {rule.provider, {}};
  }
  return {};
}

}  // namespace sandforge::cli
