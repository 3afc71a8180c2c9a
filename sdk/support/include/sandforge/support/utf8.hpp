// UTF-8: validation, and decoding of byte streams into text that is always valid.
//
// Bad bytes become U+FFFD, one per maximal subpart, as the WHATWG Encoding Standard ("UTF-8
// decoder") and Unicode 15, section 3.9 say. A byte order mark is kept: it is data here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sandforge {

// No overlong forms, no surrogates, nothing above U+10FFFF, no sequence cut short.
bool is_valid_utf8(std::string_view bytes) noexcept;

// The whole of `bytes` as valid UTF-8.
std::string to_valid_utf8(std::string_view bytes);

// Text that somebody else wrote, made safe to show to a person: valid UTF-8, in which what could
// move a cursor or reorder a line reads as "\n", "\x1b" or "\u{202e}". These are C0, DEL and C1
// controls, line and paragraph separators, and the characters that set a direction. Those in `keep`
// stay.
std::string escape_controls(std::string_view text, std::string_view keep = {});

// Decodes a stream that arrives in chunks of any size. Between calls it holds at most the three
// bytes of an unfinished sequence, so text appears as soon as it is complete.
// One object belongs to one stream and is not thread-safe.
class Utf8Decoder {
 public:
  // Appends to `out` the text that `bytes` completes.
  void decode(std::string_view bytes, std::string& out);
  std::string decode(std::string_view bytes);

  // End of the stream: an unfinished sequence becomes one U+FFFD. The decoder can be used again.
  void flush(std::string& out);
  std::string flush();

  // As decode and flush, but only the number of bytes that they would append.
  std::size_t count(std::string_view bytes) noexcept;
  std::size_t count_flush() noexcept;

  // Bytes held back, 0 to 3.
  std::size_t pending() const noexcept { return size_; }

 private:
  friend class Utf8Check;

  enum class Step : std::uint8_t { more, done, bad, bad_again };
  // Feeds one byte. `bad_again`: what was held is bad, and the byte must be fed once more.
  Step step(unsigned char byte) noexcept;
  // Gives the text to `sink` in pieces.
  template <class Sink>
  void run(std::string_view bytes, Sink sink);

  char held_[4] = {};
  std::uint8_t size_ = 0;
  std::uint8_t length_ = 0;  // bytes of the sequence that is being read
  std::uint8_t lower_ = 0x80;
  std::uint8_t upper_ = 0xBF;
};

// Whether a text that arrives in chunks of any size is valid. Copies go on from where it stands.
// One object belongs to one text and is not thread-safe.
class Utf8Check {
 public:
  // False as soon as it cannot become valid any more; what comes then is not to be asked about.
  bool take(std::string_view bytes) noexcept;
  // Whether it could end here: no sequence is cut short.
  bool whole() const noexcept { return decoder_.pending() == 0; }

 private:
  Utf8Decoder decoder_;
};

}  // namespace sandforge
