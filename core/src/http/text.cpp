#include "http/text.hpp"

#include <algorithm>

namespace sandforge::http {
namespace {

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) noexcept {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool lists(std::string_view list, std::string_view word) noexcept {
  for (;;) {
    const auto comma = std::min(list.find(','), list.size());
    if (same_name(trimmed(list.substr(0, comma)), word)) return true;
    if (comma == list.size()) return false;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace sandforge::http
