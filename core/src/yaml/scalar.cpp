#include "scalar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace sandforge::yaml_detail {
namespace {

constexpr std::string_view standard_prefix = "tag:yaml.org,2002:";

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

template <std::size_t N>
bool one_of(std::string_view text, const std::array<std::string_view, N>& words) noexcept {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_null(std::string_view text) noexcept {
  return one_of<5>(text, {"", "~", "null", "Null", "NULL"});
}
bool is_true(std::string_view text) noexcept {
  return one_of<3>(text, {"true", "True", "TRUE"});
}
bool is_false(std::string_view text) noexcept {
  return one_of<3>(text, {"false", "False", "FALSE"});
}

std::string_view without_sign(std::string_view text) noexcept {
  const bool sign = !text.empty() && (text.front() == '-' || text.front() == '+');
  return sign ? text.substr(1) : text;
}

bool is_special_float(std::string_view text) noexcept {
  if (one_of<3>(without_sign(text), {".inf", ".Inf", ".INF"})) return true;
  return one_of<3>(text, {".nan", ".NaN", ".NAN"});
}

bool all_digits(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

std::size_t count_digits(std::string_view text) noexcept {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  return static_cast<std::size_t>(end - text.begin());
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool is_float(std::string_view text) noexcept {
  text = without_sign(text);
  const std::size_t whole = count_digits(text);
  text.remove_prefix(whole);
  std::size_t fraction = 0;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    fraction = count_digits(text);
    text.remove_prefix(fraction);
  }
  if (whole + fraction == 0) return false;
  if (text.empty()) return true;
  if (text.front() != 'e' && text.front() != 'E') return false;
  return all_digits(without_sign(text.substr(1)));
}

Scalar failed(std::string message) {
  return {nullptr, std::move(message)};
}

Scalar integer_from(std::string_view digits, int base, std::string_view written) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (parsed.ec == std::errc::result_out_of_range) {
    return failed("the integer " + std::string(written) +
                  " does not fit into 64 bits; put it in quotes if it is text");
  }
  if (parsed.ec != std::errc{} || parsed.ptr != digits.data() + digits.size()) return failed("?");
  return {json::Value(value), {}};
}

Scalar decimal_integer(std::string_view text) {
  const std::string_view digits = without_sign(text);
  if (digits.size() > 1 && digits.front() == '0') {
    return failed("the number " + std::string(text) +
                  " has a leading zero, which readers take for octal or decimal; write 0o… for "
                  "octal, leave the zero out, or put it in quotes");
  }
  return integer_from(text.front() == '+' ? digits : text, 10, text);
}

Scalar float_from(std::string_view text) {
  const std::string_view digits = text.front() == '+' ? text.substr(1) : text;
  double value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (parsed.ec != std::errc{} || !std::isfinite(value)) {
    return failed("the number " + std::string(text) + " is out of range");
  }
  return {json::Value(value), {}};
}

std::optional<Scalar> number_of(std::string_view text) {
  if (all_digits(without_sign(text))) return decimal_integer(text);
  const auto digits_of = [&](std::string_view prefix, std::string_view allowed) {
    return text.size() > 2 && text.substr(0, 2) == prefix &&
           text.find_first_not_of(allowed, 2) == std::string_view::npos;
  };
  if (digits_of("0o", "01234567")) return integer_from(text.substr(2), 8, text);
  if (digits_of("0x", "0123456789abcdefABCDEF")) return integer_from(text.substr(2), 16, text);
  if (is_special_float(text)) {
    return failed("the number " + std::string(text) +
                  " has no place in JSON; put it in quotes if it is text");
  }
  if (is_float(text)) return float_from(text);
  return std::nullopt;
}

Scalar resolve_plain(std::string_view text) {
  if (is_null(text)) return {nullptr, {}};
  if (is_true(text)) return {true, {}};
  if (is_false(text)) return {false, {}};
  if (auto number = number_of(text)) return std::move(*number);
  return {json::Value(text), {}};
}

Scalar mismatch(std::string_view text, const char* tag) {
  return failed('"' + std::string(text.substr(0, 60)) + "\" does not fit the tag " + tag);
}

Scalar resolve_number(std::string_view text, bool integer) {
  const char* tag = integer ? "!!int" : "!!float";
  auto number = number_of(text);
  if (!number) return mismatch(text, tag);
  if (!number->error.empty()) return std::move(*number);
  if (integer) return number->value.is_integer() ? std::move(*number) : mismatch(text, tag);
  return {json::Value(number->value.as_number()), {}};
}

}  // namespace

Tag tag_of(std::string_view event_tag) noexcept {
  if (event_tag == "?" || event_tag.empty()) return Tag::plain;
  if (event_tag == "!") return Tag::quoted;
  if (event_tag.substr(0, standard_prefix.size()) != standard_prefix) return Tag::unknown;
  event_tag.remove_prefix(standard_prefix.size());
  if (event_tag == "str") return Tag::text;
  if (event_tag == "int") return Tag::integer;
  if (event_tag == "float") return Tag::number;
  if (event_tag == "bool") return Tag::boolean;
  if (event_tag == "null") return Tag::null;
  if (event_tag == "map") return Tag::map;
  if (event_tag == "seq") return Tag::sequence;
  return Tag::unknown;
}

std::string tag_name(std::string_view event_tag) {
  if (event_tag.substr(0, standard_prefix.size()) != standard_prefix) return std::string(event_tag);
  return "!!" + std::string(event_tag.substr(standard_prefix.size()));
}

Scalar resolve_scalar(std::string_view text, Tag tag) {
  switch (tag) {
    case Tag::plain:
      return resolve_plain(text);
    case Tag::quoted:
    case Tag::text:
      return {json::Value(text), {}};
    case Tag::integer:
      return resolve_number(text, true);
    case Tag::number:
      return resolve_number(text, false);
    case Tag::boolean:
      if (is_true(text)) return {true, {}};
      if (is_false(text)) return {false, {}};
      return mismatch(text, "!!bool");
    case Tag::null:
      return is_null(text) ? Scalar{nullptr, {}} : mismatch(text, "!!null");
    case Tag::map:
      return mismatch(text, "!!map");
    case Tag::sequence:
      return mismatch(text, "!!seq");
    case Tag::unknown:
      break;
  }
  return failed("unknown tag");
}

}  // namespace sandforge::yaml_detail
