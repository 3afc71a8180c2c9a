// The bytes of a text: what is refused before a YAML reader sees them, and line arithmetic.
#pragma once

#include <string_view>

#include "sandforge/yaml.hpp"

namespace sandforge::yaml_detail {

// Size, encoding and control characters. An empty message: fine.
YamlError check_text(std::string_view text, const YamlLimits& limits);

std::string_view without_byte_order_mark(std::string_view text) noexcept;
SourcePosition position_of(std::string_view text, std::size_t offset) noexcept;

}  // namespace sandforge::yaml_detail
