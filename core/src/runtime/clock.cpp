#include "sandforge/clock.hpp"

namespace sandforge {
namespace {

class SystemClock final : public Clock {
 public:
  std::int64_t now_ns() const noexcept override { return since_start<std::chrono::system_clock>(); }
  std::uint64_t monotonic_ns() const noexcept override {
    return static_cast<std::uint64_t>(since_start<std::chrono::steady_clock>());
  }

 private:
  template <class C>
  static std::int64_t since_start() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(C::now().time_since_epoch())
        .count();
  }
};

}  // namespace

std::shared_ptr<const Clock> system_clock() {
  static const auto clock = std::make_shared<const SystemClock>();
  return clock;
}

}  // namespace sandforge
