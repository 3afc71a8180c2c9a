#include "decimal.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace sandforge::schema_detail {
namespace {

__extension__ using Wide = unsigned __int128;

Decimal normalized(std::uint64_t digits, int exponent) noexcept {
  if (digits == 0) return {};
  while (digits % 10 == 0) {
    digits /= 10;
    ++exponent;
  }
  return {digits, exponent};
}

Decimal from_double(double number) noexcept {
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), std::fabs(number),
                                 std::chars_format::scientific)
                       .ptr;
  std::uint64_t digits = 0;
  int exponent = 0;
  const char* p = text.data();
  bool fraction = false;
  for (; p != end && *p != 'e'; ++p) {
    if (*p == '.') {
      fraction = true;
      continue;
    }
    digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
    if (fraction) --exponent;
  }
  if (p != end) {
    ++p;
    if (*p == '+') ++p;
    int written = 0;
    std::from_chars(p, end, written);
    exponent += written;
  }
  return normalized(digits, exponent);
}

std::uint64_t power_of_ten_modulo(int exponent, std::uint64_t modulus) noexcept {
  Wide result = 1 % modulus;
  Wide base = 10 % modulus;
  for (unsigned left = static_cast<unsigned>(exponent); left != 0; left >>= 1U) {
    if ((left & 1U) != 0) result = result * base % modulus;
    base = base * base % modulus;
  }
  return static_cast<std::uint64_t>(result);
}

}  // namespace

Decimal to_decimal(const json::Value& number) noexcept {
  if (!number.is_integer()) return from_double(number.as_number());
  const std::int64_t value = number.as_integer();
  const auto bits = static_cast<std::uint64_t>(value);
  return normalized(value < 0 ? std::uint64_t{0} - bits : bits, 0);
}

bool is_multiple(const Decimal& value, const Decimal& divisor) noexcept {
  if (value.digits == 0) return true;
  const int shift = value.exponent - divisor.exponent;
  if (shift >= 0) {
    const Wide scaled = Wide{value.digits % divisor.digits} *
                        power_of_ten_modulo(shift, divisor.digits) % divisor.digits;
    return scaled == 0;
  }
  // The digits of a value end in no zero, so it cannot be a multiple of a number with more of them
  // than fit 64 bits; 19 tens are the most that do.
  if (shift < -19) return false;
  Wide scaled = divisor.digits;
  for (int i = shift; i < 0; ++i)
    scaled *= 10;
  return Wide{value.digits} % scaled == 0;
}

}  // namespace sandforge::schema_detail
