// Frames between a host and a runner: cut, joined and damaged.
#include <sandforge/wire/runner/frame.hpp>

#include <cstring>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

using namespace sandforge::wire::runner;

namespace {

Header header_of(Kind kind) {
  Header header;
  header.kind = kind;
  header.method = 0x1234;
  header.lane = 1;
  header.target = ~std::uint64_t{0};
  header.id = 3;
  return header;
}

void add(FrameBuffer& buffer, std::string_view bytes) {
  std::memcpy(buffer.room(bytes.size()), bytes.data(), bytes.size());
  buffer.added(bytes.size());
}

}  // namespace

TEST_CASE("frames come out as they went in, however they are cut") {
  std::string bytes;
  append_frame(bytes, header_of(Kind::call), "payload");
  append_frame(bytes, header_of(Kind::event), "");
  append_frame(bytes, header_of(Kind::reply), std::string(100'000, 'x'));
  for (const std::size_t piece : {std::size_t{1}, std::size_t{39}, std::size_t{41}, bytes.size()}) {
    FrameBuffer buffer;
    std::vector<std::pair<Kind, std::size_t>> seen;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      add(buffer, std::string_view(bytes).substr(at, piece));
      FrameView frame;
      while (buffer.next(frame) == ParseResult::frame) {
        CHECK(frame.header.method == 0x1234);
        CHECK(frame.header.target == ~std::uint64_t{0});
        seen.emplace_back(frame.header.kind, frame.payload.size());
      }
    }
    CHECK(seen == std::vector<std::pair<Kind, std::size_t>>{
                      {Kind::call, 7}, {Kind::event, 0}, {Kind::reply, 100'000}});
  }
}

TEST_CASE("a header with anything wrong in it is malformed, whatever follows") {
  std::string good;
  append_frame(good, header_of(Kind::call), "payload");
  const auto with = [&](std::size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    FrameView frame;
    return parse_frame(bytes, frame);
  };
  CHECK(with(4, 3) == ParseResult::frame);
  CHECK(with(4, 0) == ParseResult::malformed);   // kind
  CHECK(with(4, 7) == ParseResult::malformed);   // kind
  CHECK(with(5, 1) == ParseResult::malformed);   // reserved
  CHECK(with(7, 1) == ParseResult::malformed);   // reserved
  CHECK(with(10, 1) == ParseResult::malformed);  // method
  CHECK(with(3, 1) == ParseResult::malformed);   // 16 MiB of payload
  CHECK(with(0, 9) == ParseResult::incomplete);
}
