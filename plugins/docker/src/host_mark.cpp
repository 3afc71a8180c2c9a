#include "host_mark.hpp"

#include <random>

namespace sandforge::docker {
namespace {

constexpr const char* kKey = "host";
constexpr std::size_t kDigits = 32;

}  // namespace

std::string random_digits(std::size_t count) {
  std::random_device random;
  std::string out;
  for (std::size_t i = 0; i < count; ++i)
    out += "0123456789abcdef"[random() % 16];
  return out;
}

plugin::Task<std::string> HostMark::read(plugin::Lane lane) {
  {
    const std::lock_guard lock(mutex_);
    if (!known_.empty()) co_return known_;
  }
  std::string found;
  try {
    const std::optional<std::string> before = co_await plugin::Host().state(lane, nullptr, kKey);
    if (!before || before->empty()) {
      const std::string made = random_digits(kDigits);
      co_await plugin::Host().set_state(lane, nullptr, kKey, made);
    }
    // Of two processes that made one up at once, the last one counts for both.
    const std::optional<std::string> now = co_await plugin::Host().state(lane, nullptr, kKey);
    found = now.value_or("");
  } catch (const plugin::Error& error) {
    plugin::Log::debug("containers carry no mark of this host", {{"why", error.message()}});
  }
  const std::lock_guard lock(mutex_);
  known_ = found;
  co_return found;
}

}  // namespace sandforge::docker
