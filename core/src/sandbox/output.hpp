// What is kept of a command's output. Written on the lane, read from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "sandforge/backend.hpp"
#include "sandforge/support/retention.hpp"

namespace sandforge::sandbox {

class Output {
 public:
  explicit Output(std::uint64_t limit) : out_(limit), err_(limit) {}

  // Everything but stderr is stdout.
  void append(Channel channel, std::string_view bytes);
  // Bytes that exist and are in nobody's hands.
  void add_dropped(Channel channel, std::uint64_t bytes);

  std::string bytes(Channel channel) const;
  std::uint64_t dropped(Channel channel) const;
  std::uint64_t kept_bytes() const;

 private:
  const RetentionBuffer& of(Channel channel) const { return channel == Channel::err ? err_ : out_; }

  mutable std::mutex mutex_;
  RetentionBuffer out_;
  RetentionBuffer err_;
  std::uint64_t out_lost_ = 0;
  std::uint64_t err_lost_ = 0;
};

}  // namespace sandforge::sandbox
