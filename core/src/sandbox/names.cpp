#include <array>

#include "sandforge/sandbox.hpp"

namespace sandforge {
namespace {

template <class Enum, std::size_t N>
std::string_view name_of(const std::array<std::string_view, N>& names, Enum value,
                         std::string_view other) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : other;
}

}  // namespace

std::string_view to_string(SandboxStatus status) noexcept {
  static constexpr std::array<std::string_view, 10> kNames = {
      "pending",  "initializing", "ready",      "starting",  "running",
      "stopping", "stopped",      "destroying", "destroyed", "error"};
  return name_of(kNames, status, "error");
}

std::string_view to_string(StartOutcome outcome) noexcept {
  static constexpr std::array<std::string_view, 3> kNames = {"unknown", "created", "connected"};
  return name_of(kNames, outcome, "unknown");
}

std::string_view to_string(Provenance provenance) noexcept {
  static constexpr std::array<std::string_view, 6> kNames = {"none", "exact",      "family",
                                                             "base", "checkpoint", "seed"};
  return name_of(kNames, provenance, "none");
}

}  // namespace sandforge
