// The bytes of a text: what is refused before a YAML reader sees them, and line arithmetic.
#pragma once

#include <string>
#include <string_view>

#include "sandforge/yaml.hpp"

namespace sandforge::yaml_detail {

// Size, encoding and control characters. An empty message: fine.
YamlError check_text(std::string_view text, const YamlLimits& limits);

// A scalar as the document means it. yaml-cpp writes the escapes \N and \_ (U+0085, U+00A0) as the
// lone bytes 0x85 and 0xa0; all else in a scalar of a checked document is whole UTF-8 sequences.
std::string with_whole_escapes(const std::string& scalar);

std::string_view without_byte_order_mark(std::string_view text) noexcept;
SourcePosition position_of(std::string_view text, std::size_t offset) noexcept;

}  // namespace sandforge::yaml_detail
