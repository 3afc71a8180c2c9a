// Keeps the newest output of a stream within a bound.
//
// Output is bytes. The text is a view of it, decoded as one stream (see utf8.hpp), with a bound of
// its own: the limit counts bytes of the decoded text, and no code point is ever split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "sandforge/support/utf8.hpp"

namespace sandforge {

// Appending costs O(1) per byte. Memory stays within the limit and two blocks more (a block is an
// eighth of the limit, but 256 bytes to 64 KiB), however large the chunks are. Not thread-safe.
class RetentionBuffer {
 public:
  static constexpr std::uint64_t kUnlimited = UINT64_MAX;

  // `limit` in bytes; 0 keeps nothing and counts.
  explicit RetentionBuffer(std::uint64_t limit = std::uint64_t{1} << 20);

  void append(std::string_view bytes);
  // End of the stream: the text gets one U+FFFD for a code point that was cut short. Further calls
  // do nothing; nothing may be appended afterwards.
  void finish() noexcept;

  std::uint64_t limit() const noexcept { return limit_; }
  std::uint64_t total_bytes() const noexcept { return total_; }
  std::uint64_t dropped_bytes() const noexcept { return total_ > limit_ ? total_ - limit_ : 0; }
  // The newest `limit` bytes, whatever they are.
  std::string bytes() const;

  struct Text {
    std::string text;           // valid UTF-8, at most `limit` bytes
    std::uint64_t dropped = 0;  // bytes of decoded text that are not in it
    bool truncated() const noexcept { return dropped != 0; }
  };
  // The newest code points that fit. The bytes of an unfinished one wait for the rest or `finish`.
  // Costs as much as it returns.
  Text text() const;

  // Bytes of memory that hold output.
  std::size_t memory() const noexcept;

 private:
  void trim();
  std::string tail(std::uint64_t count) const;

  std::uint64_t limit_;
  std::uint64_t kept_limit_;
  std::size_t block_size_;
  std::deque<std::string> blocks_;
  std::uint64_t kept_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t text_total_ = 0;
  Utf8Decoder decoder_;  // counts the text
  bool finished_ = false;
};

}  // namespace sandforge
