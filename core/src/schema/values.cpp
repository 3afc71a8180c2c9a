#include <cmath>

#include "model.hpp"

namespace sandforge::schema_detail {
namespace {

// 2^63 is exact as a double, INT64_MAX is not.
constexpr double two_to_63 = 9223372036854775808.0;

int compare_integer_to_double(std::int64_t integer, double number) noexcept {
  if (number >= two_to_63) return -1;
  if (number < -two_to_63) return 1;
  const double whole = std::trunc(number);
  const auto truncated = static_cast<std::int64_t>(whole);
  if (integer != truncated) return integer < truncated ? -1 : 1;
  if (number == whole) return 0;
  return number > whole ? -1 : 1;
}

}  // namespace

std::uint8_t type_bit(std::string_view name) noexcept {
  if (name == "null") return type_null;
  if (name == "boolean") return type_boolean;
  if (name == "integer") return type_integer;
  if (name == "number") return type_number;
  if (name == "string") return type_string;
  if (name == "array") return type_array;
  if (name == "object") return type_object;
  return 0;
}

std::string type_names(std::uint8_t types) {
  static constexpr std::pair<TypeBit, const char*> names[] = {
      {type_boolean, "boolean"}, {type_integer, "integer"}, {type_number, "number"},
      {type_string, "string"},   {type_array, "array"},     {type_object, "object"},
      {type_null, "null"}};
  std::string out;
  for (const auto& [bit, name] : names) {
    if ((types & bit) == 0) continue;
    if (!out.empty()) out += " or ";
    out += name;
  }
  return out;
}

const char* type_of(const json::Value& value) noexcept {
  switch (value.kind()) {
    case json::Kind::null:
      return "null";
    case json::Kind::boolean:
      return "boolean";
    case json::Kind::integer:
      return "integer";
    case json::Kind::number:
      return is_integral(value) ? "integer" : "number";
    case json::Kind::string:
      return "string";
    case json::Kind::array:
      return "array";
    case json::Kind::object:
      return "object";
  }
  return "";
}

bool has_type(std::uint8_t types, const json::Value& value) noexcept {
  switch (value.kind()) {
    case json::Kind::null:
      return (types & type_null) != 0;
    case json::Kind::boolean:
      return (types & type_boolean) != 0;
    case json::Kind::integer:
      return (types & (type_integer | type_number)) != 0;
    case json::Kind::number:
      return (types & type_number) != 0 || ((types & type_integer) != 0 && is_integral(value));
    case json::Kind::string:
      return (types & type_string) != 0;
    case json::Kind::array:
      return (types & type_array) != 0;
    case json::Kind::object:
      return (types & type_object) != 0;
  }
  return false;
}

bool is_integral(const json::Value& value) noexcept {
  if (value.is_integer()) return true;
  if (!value.is_number()) return false;
  const double number = value.as_number();
  return std::isfinite(number) && std::trunc(number) == number;
}

int compare_numbers(const json::Value& a, const json::Value& b) noexcept {
  if (a.is_integer() && b.is_integer()) {
    const std::int64_t x = a.as_integer();
    const std::int64_t y = b.as_integer();
    return x < y ? -1 : static_cast<int>(x > y);
  }
  if (a.is_integer()) return compare_integer_to_double(a.as_integer(), b.as_number());
  if (b.is_integer()) return -compare_integer_to_double(b.as_integer(), a.as_number());
  const double x = a.as_number();
  const double y = b.as_number();
  return x < y ? -1 : static_cast<int>(x > y);
}

}  // namespace sandforge::schema_detail
