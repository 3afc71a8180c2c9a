#include "sandforge/command.hpp"

#include <array>

namespace sandforge {
namespace {

constexpr std::array<std::string_view, 10> kOutcomes = {
    "exited",       "signaled",       "timed_out", "cancelled", "out_of_memory",
    "output_limit", "transport_lost", "destroyed", "crashed",   "unknown"};

}  // namespace

std::string_view to_string(Outcome outcome) noexcept {
  const auto index = static_cast<std::size_t>(outcome);
  return index < kOutcomes.size() ? kOutcomes[index] : "unknown";
}

}  // namespace sandforge
