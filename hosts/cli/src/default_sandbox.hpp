// Which provider a host uses that names none.
// Source: "Default sandbox" of the FactorySandbox document.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sandforge::cli {

// The rule as data: the first row whose conditions hold decides.
struct DefaultRule {
  std::vector<const char*> any_of;  // one of these variables is set
  std::optional<bool> development;  // absent: either
  std::vector<const char*> all_of;  // each of these variables is set, else a warning and off
  const char* provider;
};
const std::vector<DefaultRule>& default_rules();

struct DefaultSandboxInput {
  std::optional<std::string> explicit_provider;  // an option or the configuration
  bool dev_flag = false;
  std::function<std::optional<std::string>(const char*)> variable;
  std::function<bool(const std::string&)> installed;  // a plugin for this provider is there
};

struct DefaultSandbox {
  std::optional<std::string> provider;  // absent: off
  std::string warning;                  // why it is off although credentials are there
};

// Development is --dev, or SANDFORGE_ENV or NODE_ENV being "development".
DefaultSandbox choose_sandbox(const DefaultSandboxInput& input);

}  // namespace sandforge::cli
