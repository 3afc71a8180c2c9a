#include "sandforge/wire/docker/frames.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace sandforge::wire::docker;

namespace {

std::string frame(char stream, std::string_view payload) {
  std::string out(8, '\0');
  out[0] = stream;
  out[6] = static_cast<char>(payload.size() >> 8);
  out[7] = static_cast<char>(payload.size());
  return out.append(payload);
}

// What came of bytes that were cut into pieces of one size.
struct Streams {
  std::string out, err, engine;
  bool whole = false;
  bool broken = false;
};
Streams demultiplexed(std::string_view bytes, std::size_t piece) {
  Demultiplexer demultiplexer;
  Streams streams;
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    while (const auto next = demultiplexer.next(part)) {
      CHECK_FALSE(next->data.empty());
      auto& into = next->stream == FrameStream::out   ? streams.out
                   : next->stream == FrameStream::err ? streams.err
                                                      : streams.engine;
      into += next->data;
    }
    CHECK(part.empty());
  }
  streams.whole = demultiplexer.whole();
  streams.broken = demultiplexer.broken();
  return streams;
}

}  // namespace

TEST_CASE("frames come apart wherever they are cut") {
  const std::string bytes = frame(1, "out1") + frame(2, "error") + frame(1, "") + frame(0, "echo") +
                            frame(3, "engine") + frame(1, "last");
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const Streams streams = demultiplexed(bytes, piece);
    CHECK(streams.out == "out1echolast");
    CHECK(streams.err == "error");
    CHECK(streams.engine == "engine");
    CHECK(streams.whole);
  }
}

TEST_CASE("payload is passed on before all of it is there, however long it says it is") {
  Demultiplexer demultiplexer;
  const std::string start(
      "\x01\0\0\0\xff\xff\xff\xff"
      "abc",
      11);
  std::string_view bytes = start;
  const auto piece = demultiplexer.next(bytes);
  REQUIRE(piece);
  CHECK(piece->data == "abc");
  CHECK_FALSE(demultiplexer.next(bytes));
  CHECK_FALSE(demultiplexer.whole());
}

TEST_CASE("a first header that is none makes everything stdout") {
  for (const std::string& bytes : {std::string("plain text of any length\n"), std::string("x"),
                                   std::string("\x01\0\x07 raw", 7), std::string("\x02\x01", 2)}) {
    for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
      const Streams streams = demultiplexed(bytes, piece);
      CHECK(streams.out == bytes);
      CHECK(streams.err.empty());
      CHECK(streams.whole);
    }
  }
}

TEST_CASE("a later header that is none ends the output, and is known") {
  const Streams streams = demultiplexed(frame(1, "good") + "nonsense that is no frame", 5);
  CHECK(streams.out == "good");
  CHECK(streams.broken);
  CHECK_FALSE(streams.whole);
}

TEST_CASE("a stream that ends inside a header is not whole") {
  CHECK_FALSE(demultiplexed(std::string_view("\x01\0\0", 3), 3).whole);
  CHECK(demultiplexed("", 1).whole);
}
