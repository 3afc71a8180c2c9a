// The frames between a host and `sandforge-runner`.
//
// A frame is a header of 40 bytes and a payload, all numbers little-endian:
//
//   u32 length   payload bytes
//   u8  kind     Kind
//   u8  reserved zero, three times
//   u64 method   which function of the boundary (16 bits), else zero
//   u64 lane     of a call: where it runs; chosen by the host
//   u64 target   of a call: the object; of an event and a reply: the call
//   u64 id       of a call: its own, also the name of what it makes and of its callbacks
//
// Both sides treat the other as hostile: every length is checked, and whatever is wrong ends the
// connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sandforge::wire::runner {

inline constexpr std::size_t kHeaderSize = 40;
inline constexpr std::size_t kMaxPayload = 8U << 20;
inline constexpr std::size_t kMaxData = 64U << 10;   // bytes of one piece of a stream
inline constexpr std::uint32_t kMagic = 0x31524653;  // "SFR1"
inline constexpr std::uint32_t kVersion = 2;

enum class Kind : std::uint8_t {
  hello = 1,  // the host's first frame
  ready = 2,  // the runner's first frame: loaded, or why not
  call = 3,   // of an object of the other side; an answer, if any, comes as events or as a reply
  event = 4,  // a callback of a call
  reply = 5,  // the end of a call that the caller waits for
  fault = 6,  // of the runner: its plugin has broken a rule
};

struct Header {
  std::uint32_t length = 0;
  Kind kind = Kind::hello;
  std::uint16_t method = 0;
  std::uint64_t lane = 0;
  std::uint64_t target = 0;
  std::uint64_t id = 0;
};

// Of a payload of so many bytes; out: kHeaderSize bytes.
void store_header(char* out, const Header& header, std::size_t length) noexcept;
void append_frame(std::string& out, const Header& header, std::string_view payload);

// One whole frame found at the front of some bytes.
struct FrameView {
  Header header;
  std::string_view payload;
};

enum class ParseResult : std::uint8_t { frame, incomplete, malformed };

// Looks at the front of `bytes`; on `frame`, kHeaderSize + header.length bytes are used up.
ParseResult parse_frame(std::string_view bytes, FrameView& frame) noexcept;

// Bytes as they come, in; frames, out.
class FrameBuffer {
 public:
  // Room for `size` bytes to read into; then say how many there are.
  char* room(std::size_t size);
  void added(std::size_t size) noexcept { end_ += size; }
  // The view holds until the next call of room().
  ParseResult next(FrameView& frame) noexcept;

 private:
  std::string bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace sandforge::wire::runner
