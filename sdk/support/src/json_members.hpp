// Helpers that the files of the JSON part share. Not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sandforge/support/json.hpp"

namespace sandforge::json {

// By bytes of the key. Sorting and not hashing, because an attacker who knows the hash function can
// make every key collide.
std::vector<const Member*> sorted_members(const Object& object);

// The integer that a double is exactly, if it is one and fits.
std::optional<std::int64_t> exact_integer(double number) noexcept;

}  // namespace sandforge::json
