#include "sandforge/wire/docker/frames.hpp"

#include <algorithm>

namespace sandforge::wire::docker {
namespace {

bool is_possible(const char* header, std::size_t index) noexcept {
  const auto byte = static_cast<unsigned char>(header[index]);
  return index == 0 ? byte <= 3 : index > 3 || byte == 0;
}

}  // namespace

// True when a header is complete, or the stream is no longer one of frames.
bool Demultiplexer::take_header(std::string_view& bytes) {
  while (!bytes.empty() && held_ < sizeof header_) {
    header_[held_] = bytes.front();
    bytes.remove_prefix(1);
    ++held_;
    if (is_possible(header_, held_ - 1U)) continue;
    mode_ = mode_ == Mode::first ? Mode::raw : Mode::broken;
    return true;
  }
  if (held_ < sizeof header_) return false;
  mode_ = Mode::frames;
  held_ = 0;
  const auto byte = [&](int i) { return static_cast<std::uint32_t>(header_[i] & 0xff); };
  left_ = byte(4) << 24 | byte(5) << 16 | byte(6) << 8 | byte(7);
  stream_ = header_[0] == 0 ? FrameStream::out : static_cast<FrameStream>(header_[0]);
  return true;
}

std::optional<FramePiece> Demultiplexer::next(std::string_view& bytes) {
  for (;;) {
    if (mode_ == Mode::raw) {
      if (held_ > 0) {
        const std::string_view first(header_, held_);
        held_ = 0;
        return FramePiece{FrameStream::out, first};
      }
      if (bytes.empty()) return std::nullopt;
      const std::string_view all = bytes;
      bytes = {};
      return FramePiece{FrameStream::out, all};
    }
    if (mode_ == Mode::broken) bytes = {};
    if (bytes.empty()) return std::nullopt;
    if (left_ == 0) {
      if (!take_header(bytes)) return std::nullopt;
      continue;
    }
    const std::size_t n = std::min<std::size_t>(left_, bytes.size());
    const std::string_view data = bytes.substr(0, n);
    bytes.remove_prefix(n);
    left_ -= static_cast<std::uint32_t>(n);
    return FramePiece{stream_, data};
  }
}

}  // namespace sandforge::wire::docker
