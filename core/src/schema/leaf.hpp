// The assertions of a schema that look at one value only.
#pragma once

#include <cstdint>

#include "model.hpp"

namespace sandforge::schema_detail {

enum LeafFault : std::uint32_t {
  fault_never = 1U << 0,
  fault_type = 1U << 1,
  fault_minimum = 1U << 2,
  fault_maximum = 1U << 3,
  fault_exclusive_minimum = 1U << 4,
  fault_exclusive_maximum = 1U << 5,
  fault_multiple_of = 1U << 6,
  fault_min_length = 1U << 7,
  fault_max_length = 1U << 8,
  fault_pattern = 1U << 9,
  fault_format = 1U << 10,
  fault_min_items = 1U << 11,
  fault_max_items = 1U << 12,
  fault_unique_items = 1U << 13,
  fault_min_properties = 1U << 14,
  fault_max_properties = 1U << 15,
  fault_required = 1U << 16,
  fault_enum = 1U << 17,
  fault_const = 1U << 18,
};

// Every assertion that fails; zero when the value is right.
std::uint32_t check_leaf(const Leaf& leaf, const json::Value& value);
// The same for the name of a member, which is always a string.
std::uint32_t check_leaf(const Leaf& leaf, std::string_view name);

// Whether the leaf asserts anything at all.
bool asserts_anything(const Leaf& leaf) noexcept;

std::size_t count_characters(std::string_view utf8) noexcept;

}  // namespace sandforge::schema_detail
