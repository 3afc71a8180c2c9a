#include "sandbox/deadlines.hpp"

#include <algorithm>

namespace sandforge::sandbox {
namespace {

// A timer never waits longer; what lies beyond is looked at again.
constexpr std::chrono::hours kFar{24 * 365};

}  // namespace

Clock::time_point after(Clock::time_point now, std::chrono::milliseconds delay) noexcept {
  return now + std::min<std::chrono::milliseconds>(delay, kFar * 10);
}

Deadlines::~Deadlines() {
  if (timer_) timer_->cancel();
}

Deadlines::Ticket Deadlines::add(Clock::time_point when, std::function<void()> action) {
  const auto ticket = queue_.emplace(when, std::move(action));
  arm();
  return ticket;
}

void Deadlines::arm() {
  if (queue_.empty()) return;
  const auto next = queue_.begin()->first;
  if (timer_ && armed_for_ <= next) return;
  if (timer_) timer_->cancel();
  armed_for_ = next;
  const auto delay = std::clamp<Clock::duration>(next - Clock::now(), Clock::duration::zero(),
                                                 Clock::duration(kFar));
  timer_ = runtime_.timer(lane_, std::chrono::ceil<std::chrono::milliseconds>(delay),
                          [weak = weak_from_this(), serial = ++serial_](const Result<void>&) {
                            if (const auto self = weak.lock()) self->fire(serial);
                          });
}

void Deadlines::fire(std::uint64_t serial) {
  if (serial != serial_) return;  // cancelled for an earlier one
  timer_.reset();
  const auto now = Clock::now();
  while (!queue_.empty() && queue_.begin()->first <= now) {
    auto due = queue_.extract(queue_.begin());
    due.mapped()();
  }
  arm();
}

}  // namespace sandforge::sandbox
