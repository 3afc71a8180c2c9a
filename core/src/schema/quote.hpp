// Names and values inside messages: quoted, shortened, without control characters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sandforge/support/json.hpp"

namespace sandforge::schema_detail {

// JSON-quoted, at most about 60 bytes, cut at a character.
std::string quote(std::string_view text);
// A scalar as JSON, shortened; "an array", "an object" for the others.
std::string show(const json::Value& value);
// did you mean "word"? for the nearest of the known names; empty when none is near.
std::string suggest_name(std::string_view name, const std::vector<std::string>& known);
// "a, b, c", shortened after 12 entries.
std::string list_values(const std::vector<json::Value>& values);
std::string list_names(const std::vector<std::string>& names);

}  // namespace sandforge::schema_detail
