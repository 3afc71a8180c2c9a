// Which provider is used when neither the command line nor the configuration names one: the rules
// of hosts/default-sandbox.json. Source: the FactorySandbox document, Default sandbox.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sandforge/error.hpp"

namespace sandforge::cli {

extern const char* const kDefaultSandboxTable;

struct DefaultSandboxInput {
  std::optional<std::string> explicit_provider;  // named by the user: always taken
  bool development = false;                      // --dev
  std::function<std::optional<std::string>(const std::string&)> env;
  std::function<bool(const std::string&)> installed;
};

struct DefaultSandbox {
  std::string provider = "none";
  std::string why;      // for a person
  std::string warning;  // not empty: sandboxes are off although a rule held
};

// A blank variable counts as not set. Throws the Error of a table that is not valid.
DefaultSandbox choose_default_sandbox(const DefaultSandboxInput& input,
                                      const char* table = kDefaultSandboxTable);

}  // namespace sandforge::cli
