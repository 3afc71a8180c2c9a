// The formats that schemas may name, checked without regular expressions and in linear time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sandforge::schema_detail {

enum class Format : std::uint8_t {
  none,
  date,          // RFC 3339, real calendar days
  time,          // RFC 3339 with offset; a leap second only at 23:59:60 UTC
  date_time,     // RFC 3339
  duration,      // ISO 8601 as in RFC 3339 appendix A
  email,         // local part and host name; quoted local parts are allowed
  hostname,      // RFC 1123; labels that begin with xn-- are refused, their content is not checked
  ipv4,          // dotted quad without leading zeros
  ipv6,          // RFC 4291, no zone
  uri,           // RFC 3986 with a scheme
  uuid,          // RFC 4122
  json_pointer,  // RFC 6901
  regex,         // what `pattern` accepts here
  password,      // no check; the value is treated as a secret
};

inline bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

Format format_by_name(std::string_view name) noexcept;  // none when unknown
const char* format_name(Format format) noexcept;
const char* format_description(Format format) noexcept;  // "an IPv4 address"
std::vector<std::string_view> format_names();

bool matches_format(Format format, std::string_view text);

bool is_date(std::string_view text) noexcept;
bool is_time(std::string_view text) noexcept;
bool is_date_time(std::string_view text) noexcept;
bool is_duration(std::string_view text) noexcept;
bool is_email(std::string_view text) noexcept;
bool is_hostname(std::string_view text) noexcept;
bool is_ipv4(std::string_view text) noexcept;
bool is_ipv6(std::string_view text) noexcept;
bool is_uri(std::string_view text) noexcept;
bool is_uuid(std::string_view text) noexcept;
bool is_json_pointer(std::string_view text) noexcept;

}  // namespace sandforge::schema_detail
