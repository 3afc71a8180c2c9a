#include "issues.hpp"

#include <algorithm>
#include <tuple>

namespace sandforge::config_detail {

bool inside_options(std::string_view pointer) noexcept {
  return pointer.find("/options/") != std::string_view::npos;
}

ConfigIssue place_issue(const SourceMap& source, Issue issue, bool secret) {
  const bool at_key = issue.keyword == "additionalProperties" || issue.keyword == "propertyNames";
  ConfigIssue out;
  out.at = at_key ? source.key(issue.pointer) : source.value(issue.pointer);
  const bool alone = source.values_on_line(out.at.line) <= 1 && !at_key;
  const bool near_secrets =
      inside_options(issue.pointer) || std::string_view(issue.pointer).substr(0, 9) == "/secrets/";
  out.show_line = !near_secrets || (alone && !secret);
  out.issue = std::move(issue);
  return out;
}

std::string format_issues(std::string_view file, std::string_view text,
                          std::vector<ConfigIssue> issues) {
  std::stable_sort(issues.begin(), issues.end(), [](const ConfigIssue& a, const ConfigIssue& b) {
    return std::tie(a.at.line, a.at.column) < std::tie(b.at.line, b.at.column);
  });
  std::string out;
  for (const ConfigIssue& entry : issues) {
    out += format_diagnostic(file, entry.show_line ? text : std::string_view(), entry.at,
                             format_issue(entry.issue));
  }
  return out;
}

}  // namespace sandforge::config_detail
