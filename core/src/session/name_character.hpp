// The characters of names that git, ssh and a shell take as they stand.
#pragma once

namespace sandforge {

inline bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace sandforge
