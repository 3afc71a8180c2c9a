// Which branch of anyOf or oneOf was probably meant.
#pragma once

#include <string>
#include <vector>

#include "model.hpp"

namespace sandforge::schema_detail {

struct Choice {
  const Node* branch = nullptr;     // the branch that was meant
  std::string tag;                  // the member that tells the branches of a tagged union apart
  std::vector<json::Value> values;  // of the tag, or of labelled constants
};

Choice choose_alternative(const std::vector<const Node*>& parts, const json::Value& value);

// The branch that the discriminator of the value selects; null if there is none.
const Node* selected_by_tag(const std::vector<const Node*>& parts, const json::Value& value);

// "string or array", without empty and repeated entries.
std::string join_alternatives(const std::vector<std::string>& descriptions);

}  // namespace sandforge::schema_detail
