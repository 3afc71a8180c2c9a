#include "sandforge/wire/guest/frame.hpp"

#include <algorithm>

#include "bytes.hpp"

namespace sandforge::wire::guest {

void encode_header(const Header& header, char* out) noexcept {
  store(out, header.length);
  store(out + 4, header.type);
  store(out + 5, header.flags);
  store(out + 6, std::uint16_t{0});
  store(out + 8, header.channel);
  store(out + 16, header.value);
}

bool decode_header(const char* in, Header& header) noexcept {
  header.length = fetch<std::uint32_t>(in);
  header.type = fetch<std::uint8_t>(in + 4);
  header.flags = fetch<std::uint8_t>(in + 5);
  header.channel = fetch<std::uint64_t>(in + 8);
  header.value = fetch<std::uint64_t>(in + 16);
  return header.length <= kMaxPayload && fetch<std::uint16_t>(in + 6) == 0;
}

bool append_message(std::string& out, FrameType type, std::uint64_t channel, std::uint64_t value,
                    std::string_view payload, std::uint8_t flags) {
  if (payload.size() > kMaxMessage) return false;
  do {
    const std::size_t part = std::min(payload.size(), kMaxPayload);
    const bool more = part < payload.size();
    Header header;
    header.length = static_cast<std::uint32_t>(part);
    header.type = static_cast<std::uint8_t>(type);
    header.flags = static_cast<std::uint8_t>(flags | (more ? kMore : 0));
    header.channel = channel;
    header.value = value;
    char bytes[kHeaderSize];
    encode_header(header, bytes);
    out.append(bytes, kHeaderSize).append(payload.substr(0, part));
    payload.remove_prefix(part);
  } while (!payload.empty());
  return true;
}

ParseResult parse_frame(std::string_view bytes, FrameView& frame) noexcept {
  if (bytes.size() < kHeaderSize) return ParseResult::incomplete;
  if (!decode_header(bytes.data(), frame.header)) return ParseResult::malformed;
  if (bytes.size() - kHeaderSize < frame.header.length) return ParseResult::incomplete;
  frame.payload = bytes.substr(kHeaderSize, frame.header.length);
  return ParseResult::frame;
}

Assembler::Result Assembler::add(const FrameView& frame, FrameView& message) {
  const bool more = (frame.header.flags & kMore) != 0;
  if (!active_) {
    if (!more) {
      bytes_.clear();
      bytes_.shrink_to_fit();
      message = frame;
      return Result::complete;
    }
    active_ = true;
    first_ = frame.header;
    bytes_.clear();
  } else if (frame.header.type != first_.type || frame.header.channel != first_.channel ||
             frame.header.value != first_.value) {
    return Result::malformed;
  }
  // A full frame each, so that a message cannot be stretched over endless tiny ones.
  if (more && frame.payload.size() != kMaxPayload) return Result::malformed;
  if (bytes_.size() + frame.payload.size() > kMaxMessage) return Result::malformed;
  bytes_.append(frame.payload);
  if (more) return Result::partial;
  active_ = false;
  message.header = frame.header;
  message.payload = bytes_;
  return Result::complete;
}

}  // namespace sandforge::wire::guest
