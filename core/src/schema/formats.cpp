#include "formats.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "pattern.hpp"

namespace sandforge::schema_detail {
namespace {

struct Entry {
  Format format;
  const char* name;
  const char* description;
};

constexpr std::array<Entry, 13> table{{
    {Format::uri, "uri", "a URI with a scheme, such as https://example.com/path"},
    {Format::hostname, "hostname", "a host name"},
    {Format::ipv4, "ipv4", "an IPv4 address"},
    {Format::ipv6, "ipv6", "an IPv6 address"},
    {Format::date_time, "date-time", "a date and time, such as 2024-01-31T12:00:00Z"},
    {Format::date, "date", "a date, such as 2024-01-31"},
    {Format::time, "time", "a time with offset, such as 12:00:00Z"},
    {Format::duration, "duration", "a duration, such as PT1H30M"},
    {Format::uuid, "uuid", "a UUID"},
    {Format::email, "email", "an e-mail address"},
    {Format::regex, "regex", "a regular expression of the supported subset"},
    {Format::json_pointer, "json-pointer", "a JSON Pointer"},
    {Format::password, "password", "a password"},
}};

bool is_alpha(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_hex(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool one_of(char c, std::string_view set) noexcept {
  return set.find(c) != set.npos;
}

bool is_label(std::string_view label) noexcept {
  if (label.empty() || label.size() > 63) return false;
  if (label.front() == '-' || label.back() == '-') return false;
  const bool tagged = label.size() > 3 && label[2] == '-' && label[3] == '-';
  if (tagged && (label[0] == 'x' || label[0] == 'X') && (label[1] == 'n' || label[1] == 'N')) {
    return false;
  }
  return std::all_of(label.begin(), label.end(),
                     [](char c) { return is_alpha(c) || is_digit(c) || c == '-'; });
}

// RFC 3986: unreserved, sub-delims, the characters in `more`, and percent escapes.
bool is_uri_part(std::string_view part, std::string_view more) noexcept {
  constexpr std::string_view plain = "-._~!$&'()*+,;=";
  for (std::size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if (c == '%') {
      if (i + 2 >= part.size() || !is_hex(part[i + 1]) || !is_hex(part[i + 2])) return false;
      i += 2;
      continue;
    }
    if (!is_alpha(c) && !is_digit(c) && !one_of(c, plain) && !one_of(c, more)) return false;
  }
  return true;
}

bool is_scheme(std::string_view scheme) noexcept {
  if (scheme.empty() || !is_alpha(scheme.front())) return false;
  return std::all_of(scheme.begin(), scheme.end(),
                     [](char c) { return is_alpha(c) || is_digit(c) || one_of(c, "+-."); });
}

bool is_future_address(std::string_view text) noexcept {
  if (text.size() < 4 || (text[0] != 'v' && text[0] != 'V')) return false;
  const auto dot = text.find('.');
  if (dot == text.npos || dot < 2 || dot + 1 == text.size()) return false;
  const auto version = text.substr(1, dot - 1);
  if (!std::all_of(version.begin(), version.end(), is_hex)) return false;
  return text.find('%') == text.npos && is_uri_part(text.substr(dot + 1), ":");
}

bool is_authority(std::string_view authority) noexcept {
  if (const auto at = authority.rfind('@'); at != authority.npos) {
    if (!is_uri_part(authority.substr(0, at), ":")) return false;
    authority.remove_prefix(at + 1);
  }
  std::string_view port;
  if (!authority.empty() && authority.front() == '[') {
    const auto close = authority.find(']');
    if (close == authority.npos) return false;
    const auto address = authority.substr(1, close - 1);
    if (!is_ipv6(address) && !is_future_address(address)) return false;
    port = authority.substr(close + 1);
    if (!port.empty() && port.front() != ':') return false;
  } else {
    const auto colon = authority.find(':');
    if (!is_uri_part(authority.substr(0, colon), "")) return false;
    if (colon != authority.npos) port = authority.substr(colon);
  }
  if (!port.empty()) port.remove_prefix(1);
  return std::all_of(port.begin(), port.end(), is_digit);
}

bool is_local_part(std::string_view local) noexcept {
  if (local.empty() || local.size() > 64) return false;
  if (local.front() == '"') {
    if (local.size() < 2 || local.back() != '"') return false;
    for (std::size_t i = 1; i + 1 < local.size(); ++i) {
      const char c = local[i];
      if (c == '\\') {
        if (++i + 1 >= local.size()) return false;
      } else if (c == '"' || c < ' ' || c > '~') {
        return false;
      }
    }
    return true;
  }
  char previous = '.';
  for (const char c : local) {
    const bool atom = is_alpha(c) || is_digit(c) || one_of(c, "!#$%&'*+-/=?^_`{|}~");
    if (!atom && c != '.') return false;
    if (c == '.' && previous == '.') return false;
    previous = c;
  }
  return previous != '.';
}

}  // namespace

Format format_by_name(std::string_view name) noexcept {
  for (const Entry& entry : table) {
    if (name == entry.name) return entry.format;
  }
  return Format::none;
}

const char* format_name(Format format) noexcept {
  for (const Entry& entry : table) {
    if (format == entry.format) return entry.name;
  }
  return "";
}

const char* format_description(Format format) noexcept {
  for (const Entry& entry : table) {
    if (format == entry.format) return entry.description;
  }
  return "";
}

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  names.reserve(table.size());
  for (const Entry& entry : table)
    names.emplace_back(entry.name);
  return names;
}

bool matches_format(Format format, std::string_view text) {
  switch (format) {
    case Format::none:
    case Format::password:
      return true;
    case Format::date:
      return is_date(text);
    case Format::time:
      return is_time(text);
    case Format::date_time:
      return is_date_time(text);
    case Format::duration:
      return is_duration(text);
    case Format::email:
      return is_email(text);
    case Format::hostname:
      return is_hostname(text);
    case Format::ipv4:
      return is_ipv4(text);
    case Format::ipv6:
      return is_ipv6(text);
    case Format::uri:
      return is_uri(text);
    case Format::uuid:
      return is_uuid(text);
    case Format::json_pointer:
      return is_json_pointer(text);
    case Format::regex: {
      std::string error;
      return Pattern::compile(text, error) != nullptr;
    }
  }
  return false;
}

bool is_hostname(std::string_view text) noexcept {
  if (text.empty() || text.size() > 253) return false;
  while (true) {
    const auto dot = text.find('.');
    if (!is_label(text.substr(0, dot))) return false;
    if (dot == text.npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_ipv4(std::string_view text) noexcept {
  for (int part = 0; part < 4; ++part) {
    const auto dot = text.find('.');
    const bool last = part == 3;
    if (last != (dot == text.npos)) return false;
    const auto digits = text.substr(0, dot);
    if (digits.empty() || digits.size() > 3) return false;
    if (!std::all_of(digits.begin(), digits.end(), is_digit)) return false;
    if (digits.size() > 1 && digits.front() == '0') return false;
    int value = 0;
    for (const char c : digits)
      value = value * 10 + (c - '0');
    if (value > 255) return false;
    if (!last) text.remove_prefix(dot + 1);
  }
  return true;
}

bool is_ipv6(std::string_view text) noexcept {
  int groups = 0;
  bool gap = false;
  if (text.substr(0, 2) == "::") {
    gap = true;
    text.remove_prefix(2);
    if (text.empty()) return true;
  }
  while (true) {
    const auto colon = text.find(':');
    const auto group = text.substr(0, colon);
    if (group.find('.') != group.npos) {
      if (colon != text.npos || !is_ipv4(group)) return false;
      groups += 2;
      break;
    }
    if (group.empty() || group.size() > 4) return false;
    if (!std::all_of(group.begin(), group.end(), is_hex)) return false;
    if (++groups > 8) return false;
    if (colon == text.npos) break;
    text.remove_prefix(colon + 1);
    if (!text.empty() && text.front() == ':') {
      if (gap) return false;
      gap = true;
      text.remove_prefix(1);
      if (text.empty()) break;
    }
  }
  return gap ? groups < 8 : groups == 8;
}

bool is_uri(std::string_view text) noexcept {
  const auto colon = text.find(':');
  if (colon == text.npos || !is_scheme(text.substr(0, colon))) return false;
  text.remove_prefix(colon + 1);
  if (const auto hash = text.find('#'); hash != text.npos) {
    if (!is_uri_part(text.substr(hash + 1), ":@/?")) return false;
    text = text.substr(0, hash);
  }
  if (const auto question = text.find('?'); question != text.npos) {
    if (!is_uri_part(text.substr(question + 1), ":@/?")) return false;
    text = text.substr(0, question);
  }
  if (text.substr(0, 2) == "//") {
    text.remove_prefix(2);
    const auto slash = text.find('/');
    if (!is_authority(text.substr(0, slash))) return false;
    text = slash == text.npos ? std::string_view{} : text.substr(slash);
  }
  return is_uri_part(text, ":@/");
}

bool is_uuid(std::string_view text) noexcept {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !is_hex(text[i])) return false;
  }
  return true;
}

bool is_email(std::string_view text) noexcept {
  const auto at = text.rfind('@');
  if (at == text.npos || !is_local_part(text.substr(0, at))) return false;
  const auto domain = text.substr(at + 1);
  if (domain.size() > 2 && domain.front() == '[' && domain.back() == ']') {
    auto address = domain.substr(1, domain.size() - 2);
    if (address.substr(0, 5) == "IPv6:") return is_ipv6(address.substr(5));
    return is_ipv4(address);
  }
  return is_hostname(domain);
}

bool is_json_pointer(std::string_view text) noexcept {
  if (!text.empty() && text.front() != '/') return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '~') continue;
    if (i + 1 == text.size() || (text[i + 1] != '0' && text[i + 1] != '1')) return false;
  }
  return true;
}

}  // namespace sandforge::schema_detail
