#include "sandforge/posix/drain.hpp"

#include <algorithm>

namespace sandforge::posix {

void DrainRule::leader_exited(std::int64_t now_ms) noexcept {
  if (exited_) return;
  exited_ = true;
  since_ = now_ms;
  last_data_ = now_ms;
}

void DrainRule::data(std::int64_t now_ms) noexcept {
  last_data_ = now_ms;
}

void DrainRule::credit(bool open, std::int64_t now_ms) noexcept {
  if (open == open_) return;
  if (exited_) {
    const std::int64_t stretch = now_ms - since_;
    if (open_ || stretch < kIdleMs) counted_ += stretch;
  }
  open_ = open;
  since_ = now_ms;
}

std::optional<std::int64_t> DrainRule::deadline() const noexcept {
  if (!exited_ || !open_) return std::nullopt;
  return std::min(std::max(last_data_, since_) + kIdleMs, since_ + (kLimitMs - counted_));
}

bool DrainRule::over(std::int64_t now_ms) const noexcept {
  const auto at = deadline();
  return at && now_ms >= *at;
}

}  // namespace sandforge::posix
