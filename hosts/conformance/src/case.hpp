// A case of the suite as data: what it needs, and its steps. The format: sdk/conformance/README.md.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/conformance.hpp"
#include "sandforge/error.hpp"

namespace sandforge::conformance {

struct Case : CaseInfo {
  bool of_core = false;       // its subject is core; the plugin is not opened
  bool runs_programs = true;  // such as sh, which a provider of commands of its own has not
  std::chrono::seconds bound{60};
  json::Array steps;
};

// All cases of the suite, in its order.
const std::vector<Case>& suite_cases();
// Of one text; `file` is for messages. Throws Exception: invalid, with the place.
std::vector<Case> read_cases(std::string_view text, const std::string& file);
// Those of the suite and of the request's files.
std::vector<Case> all_cases(const Request& request);
// What the request selects of them.
std::vector<Case> select_cases(const Request& request);

// Whether the whole of `text` fits: * is any run of characters, ? any one.
bool fits_glob(std::string_view glob, std::string_view text) noexcept;

}  // namespace sandforge::conformance
