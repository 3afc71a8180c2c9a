#include "sandbox/output.hpp"

namespace sandforge::sandbox {

void Output::append(Channel channel, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  (channel == Channel::err ? err_ : out_).append(bytes);
}

void Output::add_dropped(Channel channel, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  (channel == Channel::err ? err_lost_ : out_lost_) += bytes;
}

std::string Output::bytes(Channel channel) const {
  const std::lock_guard lock(mutex_);
  return of(channel).bytes();
}

std::uint64_t Output::dropped(Channel channel) const {
  const std::lock_guard lock(mutex_);
  return of(channel).dropped_bytes() + (channel == Channel::err ? err_lost_ : out_lost_);
}

std::uint64_t Output::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return out_.memory() + err_.memory();
}

}  // namespace sandforge::sandbox
