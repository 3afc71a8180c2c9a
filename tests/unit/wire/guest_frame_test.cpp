#include "sandforge/wire/guest/frame.hpp"

#include <catch2/catch.hpp>

using namespace sandforge::wire::guest;

namespace {

std::string one_frame(FrameType type, std::size_t size, std::uint8_t flags,
                      std::uint64_t channel = 7) {
  Header header;
  header.length = static_cast<std::uint32_t>(size);
  header.type = static_cast<std::uint8_t>(type);
  header.flags = flags;
  header.channel = channel;
  std::string out(kHeaderSize, '\0');
  encode_header(header, out.data());
  return out.append(size, 'x');
}

Assembler::Result add(Assembler& assembler, const std::string& bytes, FrameView& message) {
  FrameView frame;
  REQUIRE(parse_frame(bytes, frame) == ParseResult::frame);
  return assembler.add(frame, message);
}

}  // namespace

TEST_CASE("a header has the layout of the specification") {
  Header header;
  header.length = 0x0304;
  header.type = 0x91;
  header.flags = 1;
  header.channel = 0x1122334455667788;
  header.value = 0x99;
  char bytes[kHeaderSize];
  encode_header(header, bytes);
  CHECK(std::string(bytes, kHeaderSize) ==
        std::string("\x04\x03\0\0\x91\x01\0\0\x88\x77\x66\x55\x44\x33\x22\x11\x99\0\0\0\0\0\0\0",
                    24));
  Header back;
  REQUIRE(decode_header(bytes, back));
  CHECK(back.channel == header.channel);
  CHECK(back.value == 0x99);
}

TEST_CASE("malformed headers are refused") {
  FrameView frame;
  std::string bytes = one_frame(FrameType::ping, 0, 0);
  bytes[6] = 1;  // reserved
  CHECK(parse_frame(bytes, frame) == ParseResult::malformed);
  bytes = one_frame(FrameType::ping, 0, 0);
  bytes[2] = 2;  // 128 KiB
  CHECK(parse_frame(bytes, frame) == ParseResult::malformed);
}

TEST_CASE("a frame is incomplete until its last byte") {
  const std::string bytes = one_frame(FrameType::output, 10, 0);
  FrameView frame;
  for (std::size_t n = 0; n < bytes.size(); ++n)
    CHECK(parse_frame(std::string_view(bytes).substr(0, n), frame) == ParseResult::incomplete);
  const std::string more = bytes + "next";
  REQUIRE(parse_frame(more, frame) == ParseResult::frame);
  CHECK(frame.payload == "xxxxxxxxxx");
}

TEST_CASE("messages of every size survive being split") {
  const auto size = GENERATE(as<std::size_t>(), 0, 1, kMaxPayload - 1, kMaxPayload, kMaxPayload + 1,
                             3 * kMaxPayload, kMaxMessage);
  std::string payload(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    payload[i] = static_cast<char>(i * 31 >> 3);
  std::string bytes;
  REQUIRE(append_message(bytes, FrameType::spawn, 9, 4, payload));
  Assembler assembler;
  FrameView frame, message;
  std::string_view rest = bytes;
  Assembler::Result result = Assembler::Result::partial;
  while (!rest.empty()) {
    REQUIRE(result == Assembler::Result::partial);
    REQUIRE(parse_frame(rest, frame) == ParseResult::frame);
    result = assembler.add(frame, message);
    rest.remove_prefix(kHeaderSize + frame.payload.size());
  }
  REQUIRE(result == Assembler::Result::complete);
  CHECK(message.payload == payload);
  CHECK(message.header.channel == 9);
  CHECK(message.header.value == 4);
}

TEST_CASE("too large a message is not sent, nor taken") {
  std::string out;
  CHECK_FALSE(append_message(out, FrameType::spawn, 1, 0, std::string(kMaxMessage + 1, 'x')));
  CHECK(out.empty());
  Assembler assembler;
  FrameView message;
  const std::string full = one_frame(FrameType::spawn, kMaxPayload, kMore);
  for (std::size_t i = 0; i < kMaxMessage / kMaxPayload; ++i)
    REQUIRE(add(assembler, full, message) == Assembler::Result::partial);
  CHECK(add(assembler, full, message) == Assembler::Result::malformed);
}

TEST_CASE("frames of two messages do not mix, and parts are full") {
  FrameView message;
  {
    Assembler assembler;
    REQUIRE(add(assembler, one_frame(FrameType::spawn, kMaxPayload, kMore), message) ==
            Assembler::Result::partial);
    CHECK(add(assembler, one_frame(FrameType::attach, 1, 0), message) ==
          Assembler::Result::malformed);
  }
  {
    Assembler assembler;
    REQUIRE(add(assembler, one_frame(FrameType::spawn, kMaxPayload, kMore), message) ==
            Assembler::Result::partial);
    CHECK(add(assembler, one_frame(FrameType::spawn, 1, 0, 8), message) ==
          Assembler::Result::malformed);
  }
  {
    Assembler assembler;
    CHECK(add(assembler, one_frame(FrameType::spawn, 1, kMore), message) ==
          Assembler::Result::malformed);
  }
}
