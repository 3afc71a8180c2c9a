#include <algorithm>
#include <cstdlib>

#include "sandforge/schema.hpp"

namespace sandforge {
namespace {

constexpr std::size_t longest = 64;

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Edits between two words: insert, delete, replace, swap of neighbours; case is ignored.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

// cpu_count and cpu-count are near cpuCount.
std::string without_separators(std::string_view word) {
  std::string out;
  for (const char c : word) {
    if (c != '_' && c != '-') out += c;
  }
  return out;
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > longest) return {};
  const std::string plain = without_separators(word);
  std::string best;
  std::size_t best_distance = longest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > longest) continue;
    std::size_t edits = distance(word, candidate);
    if (edits != 0) edits = std::min(edits, distance(plain, without_separators(candidate)) + 1);
    const std::size_t allowed = std::max<std::size_t>(1, std::max(word.size(), candidate.size()) / 3);
    if (edits <= allowed && edits < best_distance) {
      best = candidate;
      best_distance = edits;
    }
  }
  return best;
}

}  // namespace sandforge
