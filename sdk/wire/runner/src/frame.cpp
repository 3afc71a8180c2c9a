#include "sandforge/wire/runner/frame.hpp"

#include <cstring>

#include "sandforge/wire/runner/bytes.hpp"

namespace sandforge::wire::runner {

void store_header(char* out, const Header& header, std::size_t length) noexcept {
  store(out, static_cast<std::uint32_t>(length));
  store(out + 4, std::uint32_t{static_cast<std::uint8_t>(header.kind)});
  store(out + 8, std::uint64_t{header.method});
  store(out + 16, header.lane);
  store(out + 24, header.target);
  store(out + 32, header.id);
}

void append_frame(std::string& out, const Header& header, std::string_view payload) {
  char bytes[kHeaderSize];
  store_header(bytes, header, payload.size());
  out.append(bytes, kHeaderSize).append(payload);
}

ParseResult parse_frame(std::string_view bytes, FrameView& frame) noexcept {
  if (bytes.size() < kHeaderSize) return ParseResult::incomplete;
  const char* in = bytes.data();
  Header& header = frame.header;
  header.length = fetch<std::uint32_t>(in);
  const auto kind = fetch<std::uint8_t>(in + 4);
  const auto method = fetch<std::uint64_t>(in + 8);
  if (header.length > kMaxPayload || kind < 1 || kind > 6 || method > 0xFFFF ||
      fetch<std::uint16_t>(in + 5) != 0 || in[7] != 0)
    return ParseResult::malformed;
  header.kind = static_cast<Kind>(kind);
  header.method = static_cast<std::uint16_t>(method);
  header.lane = fetch<std::uint64_t>(in + 16);
  header.target = fetch<std::uint64_t>(in + 24);
  header.id = fetch<std::uint64_t>(in + 32);
  if (bytes.size() - kHeaderSize < header.length) return ParseResult::incomplete;
  frame.payload = bytes.substr(kHeaderSize, header.length);
  return ParseResult::frame;
}

char* FrameBuffer::room(std::size_t size) {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (begin_ > 0 && bytes_.size() - end_ < size) {
    std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (bytes_.size() - end_ < size) bytes_.resize(end_ + size);
  return bytes_.data() + end_;
}

ParseResult FrameBuffer::next(FrameView& frame) noexcept {
  const auto result = parse_frame(std::string_view(bytes_).substr(begin_, end_ - begin_), frame);
  if (result == ParseResult::frame) begin_ += kHeaderSize + frame.header.length;
  return result;
}

}  // namespace sandforge::wire::runner
