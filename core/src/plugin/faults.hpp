// Rules of the boundary that a plugin broke: counted and logged, by name, and never undefined.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/log.hpp"

namespace sandforge::plugin {

enum class Fault : std::uint8_t {
  late_callback,      // a callback after its last one, or with a ctx that was never given
  wrong_ctx,          // a ctx that belongs to another kind of callback
  inside_start,       // a callback from inside the call that started the operation
  overlap,            // two callbacks of one object at once
  over_credit,        // more bytes than were granted
  out_of_order,       // an event twice, or before or after its time
  missing_value,      // a null pointer or an absent member where there must be one
  bad_value,          // a value that the header does not allow
  contradiction,      // the answer and the callbacks do not agree
  exception,          // an exception came out of a function of the plugin
  off_lane,           // a [lane] function of the host was called elsewhere
  unlisted_variable,  // a variable was read that the manifest does not name
};
inline constexpr std::size_t kFaultKinds = 12;
std::string_view to_string(Fault fault) noexcept;

// Thread rule: every function from any thread.
class Faults {
 public:
  explicit Faults(std::string plugin) : plugin_(std::move(plugin)) {}

  using Relay = std::function<void(std::uint8_t kind, std::string_view what, std::uint64_t count)>;

  // Tells of the first ten of a kind, then of each power of two, so that a plugin cannot flood the
  // log. `times`: so many of the kind at once, as another process counted them.
  void report(Fault fault, std::string_view what, std::uint64_t times = 1) noexcept;
  std::uint64_t count(Fault fault) const noexcept {
    return counts_[static_cast<std::size_t>(fault)].load();
  }
  std::uint64_t total() const noexcept;
  // Who is told: the relay where there is one, else the logger; either may be null.
  void tell(std::shared_ptr<Logger> logger, Relay relay = {});

 private:
  const std::string plugin_;
  std::array<std::atomic<std::uint64_t>, kFaultKinds> counts_{};
  std::mutex mutex_;
  std::shared_ptr<Logger> logger_;
  Relay relay_;
};

// The record of the log. [any]
void log_fault(Logger& logger, std::string_view plugin, Fault fault, std::string_view what,
               std::uint64_t count);

}  // namespace sandforge::plugin
