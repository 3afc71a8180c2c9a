// What a YAML scalar means: the core schema of YAML 1.2, and errors where readers disagree.
#pragma once

#include <string>
#include <string_view>

#include "sandforge/support/json.hpp"

namespace sandforge::yaml_detail {

enum class Tag { plain, quoted, text, integer, number, boolean, null, map, sequence, unknown };

// From the tag of a yaml-cpp event: "?" plain, "!" quoted or block, or a full URI.
Tag tag_of(std::string_view event_tag) noexcept;
// "!!set" for the full URI of a standard tag, else as it is.
std::string tag_name(std::string_view event_tag);

struct Scalar {
  json::Value value;
  std::string error;  // not empty: refused
};

Scalar resolve_scalar(std::string_view text, Tag tag);

}  // namespace sandforge::yaml_detail
