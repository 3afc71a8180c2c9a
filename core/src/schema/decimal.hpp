// Exact `multipleOf`: numbers as decimal fractions, the way they were written.
#pragma once

#include <cstdint>

#include "sandforge/support/json.hpp"

namespace sandforge::schema_detail {

// digits * 10^exponent, digits without trailing zeros (0 is 0 * 10^0). The shortest decimal that
// reads back as the same double: 4.02 is 402 * 10^-2, whatever its binary form is.
struct Decimal {
  std::uint64_t digits = 0;
  int exponent = 0;
};

// The magnitude of a number; the sign does not matter here.
Decimal to_decimal(const json::Value& number) noexcept;

// Whether value is an integer multiple of divisor, which is not zero.
bool is_multiple(const Decimal& value, const Decimal& divisor) noexcept;

}  // namespace sandforge::schema_detail
