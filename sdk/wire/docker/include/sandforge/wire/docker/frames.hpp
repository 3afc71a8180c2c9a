// The output of a command without a terminal, as an engine multiplexes it on one stream.
//
// A frame is a header of 8 bytes and its payload: byte 0 says which stream (0 and 1 stdout, 2
// stderr, 3 an error of the engine), bytes 1 to 3 are zero, bytes 4 to 7 are the length,
// big-endian.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sandforge::wire::docker {

enum class FrameStream : std::uint8_t { out = 1, err = 2, engine = 3 };

struct FramePiece {
  FrameStream stream;
  std::string_view data;  // never empty; valid until the next call
};

/*
 * Takes frames apart, wherever the bytes are cut. Payload is passed on as it comes: nothing is
 * stored but a header, whatever length it announces. When the very first header is none, everything
 * is stdout: a terminal's output, or an engine that answers in plain text.
 */
class Demultiplexer {
 public:
  // The next piece at the front of bytes, which are used up to behind it. Nothing: all of them are.
  std::optional<FramePiece> next(std::string_view& bytes);

  // A later header is none: what follows cannot be told apart, and is dropped.
  bool broken() const noexcept { return mode_ == Mode::broken; }
  // Whether the stream may end here: not inside a header or a payload.
  bool whole() const noexcept { return mode_ != Mode::broken && held_ == 0 && left_ == 0; }

 private:
  enum class Mode : std::uint8_t { first, frames, raw, broken };
  bool take_header(std::string_view& bytes);

  Mode mode_ = Mode::first;
  char header_[8] = {};
  std::uint8_t held_ = 0;
  FrameStream stream_ = FrameStream::out;
  std::uint32_t left_ = 0;
};

}  // namespace sandforge::wire::docker
