// "Did you mean …": the known name that a mistyped one most likely stands for.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandforge {

// Insertions, deletions, replacements and swaps of neighbouring bytes that turn `a` into `b`
// (Damerau-Levenshtein, optimal string alignment). Above `limit` the answer is `limit + 1`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

// The nearest of `known`, the first of equals. Letter case does not count as a difference. Empty
// when nothing is close: one edit for names of up to 4 bytes, two up to 8, else three. Names above
// 128 bytes have no neighbours.
std::optional<std::string> nearest_name(std::string_view name,
                                        const std::vector<std::string>& known);

}  // namespace sandforge
