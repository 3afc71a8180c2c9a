#include "plugin/faults.hpp"

#include <bit>
#include <string>

namespace sandforge::plugin {

std::string_view to_string(Fault fault) noexcept {
  constexpr std::array<std::string_view, kFaultKinds> names = {
      "late_callback", "wrong_ctx",    "inside_start",  "overlap",
      "over_credit",   "out_of_order", "missing_value", "bad_value",
      "contradiction", "exception",    "off_lane",      "unlisted_variable"};
  return names[static_cast<std::size_t>(fault)];
}

void Faults::report(Fault fault, std::string_view what, std::uint64_t times) noexcept {
  const std::uint64_t before = counts_[static_cast<std::size_t>(fault)].fetch_add(times);
  const std::uint64_t n = before + times;
  if (n > 10 && std::bit_width(n) == std::bit_width(before)) return;
  std::shared_ptr<Logger> logger;
  Relay relay;
  {
    const std::lock_guard lock(mutex_);
    logger = logger_;
    relay = relay_;
  }
  if (relay) {
    try {
      relay(static_cast<std::uint8_t>(fault), what, n);
    } catch (...) {
      // No memory to tell of it: it is counted.
    }
  } else if (logger) {
    log_fault(*logger, plugin_, fault, what, n);
  }
}

void log_fault(Logger& logger, std::string_view plugin, Fault fault, std::string_view what,
               std::uint64_t count) {
  logger.write(LogLevel::warn, "a plugin broke a rule of the boundary",
               {{"plugin", plugin},
                {"fault", to_string(fault)},
                {"what", what},
                {"count", std::to_string(count)}});
}

std::uint64_t Faults::total() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& count : counts_)
    sum += count.load();
  return sum;
}

void Faults::tell(std::shared_ptr<Logger> logger, Relay relay) {
  const std::lock_guard lock(mutex_);
  logger_ = std::move(logger);
  relay_ = std::move(relay);
}

}  // namespace sandforge::plugin
