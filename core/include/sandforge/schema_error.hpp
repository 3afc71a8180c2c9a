// The mistakes in a document as one Error.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandforge/error.hpp"
#include "sandforge/schema.hpp"

namespace sandforge {

// invalid: `what` and the first issue, of at least one. All of them are in the details, as
// "issues".
inline Error issues_error(const std::vector<Issue>& issues, std::string_view what,
                          std::string reason) {
  json::Array texts;
  for (const Issue& issue : issues)
    texts.emplace_back(format_issue(issue));
  Error error(Status::invalid, std::string(what) + format_issue(issues.front()), std::move(reason));
  error.details.set("issues", std::move(texts));
  return error;
}

}  // namespace sandforge
