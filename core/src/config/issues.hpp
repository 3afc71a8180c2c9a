// Collecting mistakes of a configuration with their places.
#pragma once

#include <string>
#include <vector>

#include "sandforge/host_config.hpp"

namespace sandforge::config_detail {

// Whether a pointer lies in the options of a provider, where any value may be a secret.
bool inside_options(std::string_view pointer) noexcept;

// Adds the place. Lines that may show a secret are not to be shown: options may hold secrets that
// only the provider's schema knows, so of them only a line with one value, the one that is wrong.
ConfigIssue place_issue(const SourceMap& source, Issue issue, bool secret);

// "file:line:col: …" with excerpts, in the order of the file.
std::string format_issues(std::string_view file, std::string_view text,
                          std::vector<ConfigIssue> issues);

}  // namespace sandforge::config_detail
