// Text encodings of bytes: base64 and base64url (RFC 4648), hexadecimal, percent (RFC 3986).
//
// Decoding is strict: anything that the encoder would not have written is refused, so each value
// has one spelling. No errors but an empty optional. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sandforge {

// With padding. Decoding wants the padding, and zero in the bits that carry no data.
std::string base64_encode(std::string_view bytes);
std::optional<std::string> base64_decode(std::string_view text);

// `-` and `_` for `+` and `/`, no padding; decoding refuses padding.
std::string base64url_encode(std::string_view bytes);
std::optional<std::string> base64url_decode(std::string_view text);

// Lower-case digits are written, both cases are read.
std::string hex_encode(std::string_view bytes);
std::optional<std::string> hex_decode(std::string_view text);

// Keeps letters, digits and `-._~`; every other byte becomes %XX in upper case. Fit for one path
// segment or one query value.
std::string percent_encode(std::string_view bytes);
// As percent_encode, but keeps `/`: for whole paths.
std::string percent_encode_path(std::string_view bytes);
// A `+` stays a plus. Refuses a `%` without two hexadecimal digits; every other byte is kept.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace sandforge
