// What every stream of the host's services does for the plugin that asked for it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plugin/abi_call.hpp"
#include "sandforge/abi.h"
#include "sandforge/error.hpp"

namespace sandforge::plugin {

// A copy of what a plugin gave, of the size that this host knows. invalid: one of them is missing.
inline Result<sf_stream_events> copy_stream_events(const sf_stream_events* given) {
  if (given == nullptr || !SF_HAS_FN(given, on_data) || !SF_HAS_FN(given, on_writable) ||
      !SF_HAS_FN(given, done))
    return Error(Status::invalid, "a stream needs all of its events");
  return sf_stream_events{sizeof(sf_stream_events), given->ctx, given->on_data, given->on_writable,
                          given->done};
}

// The last event. error: null where it came to its end.
inline void call_stream_done(Plugin& plugin, const char* what, const sf_stream_events& events,
                             const Error* error, std::uint64_t delivered, std::uint64_t dropped) {
  const sf_stream_end end{sizeof(end), delivered, dropped};
  const sf_stream_end* given = &end;
  call_done(plugin, what, events.done, events.ctx, error, given);
}

// Bytes that may be delivered. Granted from any thread, spent on the stream's lane alone.
class Credit {
 public:
  explicit Credit(std::uint64_t window) noexcept : left_(std::min(window, kMost)) {}

  // True where somebody may be waiting for it: there was none before.
  bool grant(std::uint64_t bytes) noexcept {
    std::uint64_t before = left_.load();
    while (!left_.compare_exchange_weak(before, before + std::min(bytes, kMost - before))) {
    }
    return before == 0 && bytes > 0;
  }
  void spend(std::size_t bytes) noexcept { left_.fetch_sub(bytes); }

  bool none() const noexcept { return left_.load() == 0; }
  // As much of `size` as there is credit for.
  std::size_t of(std::size_t size) const noexcept {
    return static_cast<std::size_t>(std::min<std::uint64_t>(size, left_.load()));
  }

 private:
  // Far beyond any stream, and far from an overflow.
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  std::atomic<std::uint64_t> left_;
};

}  // namespace sandforge::plugin
