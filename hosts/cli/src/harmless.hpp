// Foreign text on a terminal: ids, names and messages of plugins, commands, configuration files.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "sandforge/support/utf8.hpp"

namespace sandforge::cli {

// Whatever a terminal would obey is written out; line ends and tabs stay.
inline std::string harmless_text(std::string_view text) {
  return escape_controls(text, "\n\t");
}
// On one line, whatever it holds.
inline std::string harmless_line(std::string_view text) {
  return escape_controls(text);
}

// Code points: how wide the text is, near enough for a table.
inline std::size_t width_of(std::string_view utf8) noexcept {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace sandforge::cli
