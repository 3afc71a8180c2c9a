// The frames between a host and `sandforge-guest`.
//
// A frame is a header of 24 bytes and at most 64 KiB of payload, all numbers little-endian:
//
//   u32 length    payload bytes
//   u8  type      FrameType; host to guest below 0x80, guest to host from 0x80
//   u8  flags     meaning by type; kMore on every frame of a message but its last
//   u16 reserved  zero
//   u64 channel   chosen by the host, rising, never used twice on a connection; 0: the connection
//   u64 value     meaning by type: a count, an offset, a token
//
// A message that does not fit one frame travels in consecutive frames of the same type and
// channel that carry kMore, up to kMaxMessage bytes. Both sides treat the other as hostile: every
// length is checked, and whatever is wrong ends the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sandforge::wire::guest {

inline constexpr std::size_t kHeaderSize = 24;
inline constexpr std::size_t kMaxPayload = 64 * 1024;
inline constexpr std::size_t kMaxMessage = 8 * 1024 * 1024;
inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::uint32_t kMagic = 0x31474653;  // "SFG1"

inline constexpr std::uint8_t kMore = 0x80;

// 0x40 to 0x5f and 0xc0 to 0xdf are file operations (files.hpp); those that stream take `credit`,
// and all that are not over can be left.
enum class FrameType : std::uint8_t {
  // host to guest
  hello = 0x01,
  ping = 0x02,  // value: token, echoed by pong
  pong = 0x03,
  spawn = 0x10,
  attach = 0x11,
  stdin_data = 0x12,   // payload: bytes, under the credit that the guest granted
  stdin_close = 0x13,  // end of file after what was sent
  credit = 0x14,       // value: bytes of output that may be sent in addition
  ack = 0x15,          // two u64: stdout and stderr offsets that the host has stored
  resize = 0x16,       // two u16: columns and rows
  signal = 0x17,
  kill = 0x18,
  leave = 0x19,    // the channel is closed, the process goes on
  release = 0x1a,  // forget a process that has ended, with its log
  list = 0x20,
  info = 0x21,
  env_get = 0x22,
  env_set = 0x23,
  stop_all = 0x24,
  file_stat = 0x40,
  file_list = 0x41,
  file_read = 0x42,
  file_write = 0x43,
  file_data = 0x44,    // payload: bytes to write, under the credit that the guest granted
  file_commit = 0x45,  // all was sent: the file takes the place of the old one
  file_make_directory = 0x46,
  file_move = 0x47,
  file_remove = 0x48,
  file_watch = 0x49,
  // guest to host
  hello_reply = 0x81,
  guest_ping = 0x82,
  guest_pong = 0x83,
  started = 0x90,
  output = 0x91,        // flags: StreamId; value: offset in that stream; payload: bytes
  stdin_credit = 0x92,  // value: bytes that may be sent in addition
  stdin_closed = 0x93,  // value: errno, 0 when the process merely ended
  exited = 0x94,
  end = 0x95,    // the last frame of a process channel
  done = 0xa0,   // value: by request; the last frame of a request channel
  error = 0xa1,  // the last frame of a channel
  list_reply = 0xa2,
  info_reply = 0xa3,
  env_reply = 0xa4,
  file_entries = 0xc0,  // of stat and list; value: 1 when more follow, else 0 and the last frame
  file_bytes = 0xc1,    // of read; value: offset in the file; payload: bytes
  file_credit = 0xc2,   // of write; value: bytes that may be sent in addition
  file_event = 0xc3,    // of watch
  file_end = 0xc4,      // the last frame of the others; value: bytes that were read or written
};

struct Header {
  std::uint32_t length = 0;
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint64_t channel = 0;
  std::uint64_t value = 0;
};

// Writes kHeaderSize bytes.
void encode_header(const Header& header, char* out) noexcept;

// Reads kHeaderSize bytes. False when the length is over kMaxPayload or the reserved bits are set.
bool decode_header(const char* in, Header& header) noexcept;

// Appends one message, split into frames as needed. False, and nothing appended, when it exceeds
// kMaxMessage.
bool append_message(std::string& out, FrameType type, std::uint64_t channel, std::uint64_t value,
                    std::string_view payload, std::uint8_t flags = 0);

// One whole frame found at the front of some bytes.
struct FrameView {
  Header header;
  std::string_view payload;
};

enum class ParseResult : std::uint8_t { frame, incomplete, malformed };

// Looks at the front of `bytes`; on `frame`, kHeaderSize + header.length bytes are used up.
ParseResult parse_frame(std::string_view bytes, FrameView& frame) noexcept;

// Joins the frames of a message. Not for stdin_data and output, which are streams.
class Assembler {
 public:
  enum class Result : std::uint8_t { complete, partial, malformed };

  // On complete, `message` holds until the next call; its header is that of the last frame.
  Result add(const FrameView& frame, FrameView& message);

 private:
  std::string bytes_;
  Header first_;
  bool active_ = false;
};

}  // namespace sandforge::wire::guest
