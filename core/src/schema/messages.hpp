// What the failed assertions of one subschema mean, in words.
#pragma once

#include <string>
#include <vector>

#include "leaf.hpp"

namespace sandforge::schema_detail {

// Appends one issue for each fault that check_leaf found; secrets are not shown.
void describe_faults(const Node& node, const json::Value& value, std::uint32_t faults,
                     const std::string& pointer, bool secret, std::vector<Issue>& out);

// What a value may be, in a few words: "integer from 1 to 65535", "one of none, bridge, host".
std::string describe_allowed(const Node& node);

// A value outside a list: the message, the list and the nearest entry.
Issue not_listed(const std::vector<json::Value>& list, const json::Value& value,
                 const std::string& pointer, const char* keyword, bool secret);

}  // namespace sandforge::schema_detail
