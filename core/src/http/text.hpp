// What the words of HTTP need.
#pragma once

#include <string_view>

namespace sandforge::http {

// Equal but for upper and lower case of ASCII.
bool same_name(std::string_view a, std::string_view b) noexcept;
// Whether a list with commas holds that word, whatever its case.
bool lists(std::string_view list, std::string_view word) noexcept;
// Without blanks around it.
std::string_view trimmed(std::string_view text) noexcept;

}  // namespace sandforge::http
