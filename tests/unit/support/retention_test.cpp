#include "sandforge/support/retention.hpp"

#include <catch2/catch.hpp>
#include <random>

using sandforge::RetentionBuffer;

namespace {

const std::string kSmile = "\xF0\x9F\x98\x80";

// The rule itself, applied to the whole text: the longest run of newest code points that fits.
std::string newest_text(const std::string& text, std::uint64_t limit) {
  std::size_t from = text.size();
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text.size() - i > limit) break;
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) from = i;
  }
  return text.substr(from);
}

std::string random_bytes(std::mt19937& random, std::size_t size) {
  // Mostly pieces of sequences, so that cuts and errors meet in every way.
  static const std::string pieces[] = {"a",    "\xC3\xA9", "\xE2\x82\xAC", kSmile, "\xF0\x9F",
                                       "\x80", "\xBF\x80", "\xED\xA0\x80", "\xFF", "\xE2\x82"};
  std::string out;
  while (out.size() < size)
    out += pieces[random() % std::size(pieces)];
  return out;
}

}  // namespace

TEST_CASE("retention: the default keeps 1 MiB and counts what it drops") {
  RetentionBuffer buffer;
  buffer.append("abcd");
  buffer.append(std::string(1U << 20, 'x'));
  CHECK(buffer.bytes() == std::string(1U << 20, 'x'));
  CHECK(buffer.dropped_bytes() == 4);
  CHECK(buffer.text().text.size() == 1U << 20);
  CHECK(buffer.text().dropped == 4);
  CHECK(buffer.text().truncated());
}

TEST_CASE("retention: the newest bytes are kept") {
  RetentionBuffer buffer(5);
  buffer.append("hello ");
  CHECK(buffer.bytes() == "ello ");
  buffer.append("world");
  CHECK(buffer.bytes() == "world");
  CHECK(buffer.dropped_bytes() == 6);
  CHECK(buffer.total_bytes() == 11);
  CHECK(buffer.text().text == "world");
  CHECK(buffer.text().dropped == 6);
}

TEST_CASE("retention: nothing is dropped within the limit") {
  RetentionBuffer buffer(5);
  buffer.append("");
  CHECK(buffer.text().text.empty());
  buffer.append("world");
  CHECK(buffer.dropped_bytes() == 0);
  CHECK_FALSE(buffer.text().truncated());
}

TEST_CASE("retention: limit 0 keeps nothing and counts") {
  RetentionBuffer buffer(0);
  buffer.append("abc");
  buffer.append(kSmile);
  CHECK(buffer.bytes().empty());
  CHECK(buffer.dropped_bytes() == 7);
  CHECK(buffer.text().text.empty());
  CHECK(buffer.text().dropped == 7);
  CHECK(buffer.memory() == 0);
}

TEST_CASE("retention: without a limit everything is kept") {
  RetentionBuffer buffer(RetentionBuffer::kUnlimited);
  std::string expected;
  for (int i = 0; i < 5000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    buffer.append(line);
    expected += line;
  }
  buffer.append(std::string(3U << 20, 'z'));
  expected.append(3U << 20, 'z');
  CHECK(buffer.bytes() == expected);
  CHECK(buffer.text().text == expected);
  CHECK(buffer.dropped_bytes() == 0);
}

TEST_CASE("retention: the text never splits a code point") {
  struct Row {
    std::uint64_t limit;
    std::string text;
    std::uint64_t dropped;
  };
  const Row rows[] = {{8, kSmile + kSmile, 0}, {6, kSmile, 4}, {5, kSmile, 4},
                      {4, kSmile, 4},          {3, "", 8},     {1, "", 8}};
  for (const Row& row : rows) {
    RetentionBuffer buffer(row.limit);
    buffer.append(kSmile + kSmile);
    INFO(row.limit);
    CHECK(buffer.text().text == row.text);
    CHECK(buffer.text().dropped == row.dropped);
    CHECK(buffer.bytes() == (kSmile + kSmile).substr(8 - row.limit));
    CHECK(buffer.dropped_bytes() == 8 - row.limit);
  }
}

TEST_CASE("retention: 406 emoji in 1024 bytes") {
  RetentionBuffer buffer(1024);
  for (int i = 0; i < 406; ++i)
    buffer.append(kSmile);
  CHECK(buffer.text().text.size() == 1024);
  CHECK(buffer.text().dropped == 600);
}

TEST_CASE("retention: 150 chunks of one byte in 10 bytes") {
  RetentionBuffer buffer(10);
  std::string all;
  for (int i = 0; i < 150; ++i) {
    all.push_back(static_cast<char>('a' + i % 26));
    buffer.append(all.substr(all.size() - 1));
  }
  CHECK(buffer.bytes() == all.substr(140));
  CHECK(buffer.dropped_bytes() == 140);
}

TEST_CASE("retention: a code point that is not complete waits") {
  RetentionBuffer buffer(100);
  buffer.append("a\xF0\x9F");
  CHECK(buffer.text().text == "a");
  CHECK(buffer.text().dropped == 0);
  CHECK(buffer.bytes() == "a\xF0\x9F");
  buffer.append("\x98\x80");
  CHECK(buffer.text().text == "a" + kSmile);
  buffer.append("\xE2\x82");
  buffer.finish();
  buffer.finish();
  CHECK(buffer.text().text == "a" + kSmile + "\xEF\xBF\xBD");
  CHECK(buffer.text().dropped == 0);
}

TEST_CASE("retention: the limit counts decoded text, which can be longer than its bytes") {
  RetentionBuffer buffer(7);
  buffer.append("\xFF\xFF\xFF\xFF");
  CHECK(buffer.bytes() == "\xFF\xFF\xFF\xFF");
  CHECK(buffer.dropped_bytes() == 0);
  CHECK(buffer.text().text == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(buffer.text().dropped == 6);
}

TEST_CASE("retention: any bytes in any chunks match the rule applied to the whole") {
  std::mt19937 random(42);
  for (int round = 0; round < 400; ++round) {
    const std::uint64_t limit = random() % 40;
    RetentionBuffer buffer(limit);
    sandforge::Utf8Decoder decoder;
    std::string all;
    std::string text;
    for (int i = 0; i < 12; ++i) {
      std::string chunk = random_bytes(random, random() % 30);
      chunk.resize(chunk.size() - (chunk.empty() ? 0 : random() % 2));
      buffer.append(chunk);
      all += chunk;
      decoder.decode(chunk, text);
      REQUIRE(buffer.bytes() == all.substr(all.size() - std::min<std::size_t>(limit, all.size())));
      const auto view = buffer.text();
      REQUIRE(view.text == newest_text(text, limit));
      REQUIRE(view.dropped + view.text.size() == text.size());
    }
    buffer.finish();
    decoder.flush(text);
    REQUIRE(buffer.text().text == newest_text(text, limit));
    REQUIRE(buffer.text().dropped + buffer.text().text.size() == text.size());
  }
}

TEST_CASE("retention: memory is given back") {
  constexpr std::size_t kLimit = 4096;
  constexpr std::size_t kBlock = kLimit / 8;
  RetentionBuffer buffer(kLimit);
  CHECK(buffer.memory() == 0);
  buffer.append(std::string(64U << 20, 'x'));
  CHECK(buffer.memory() <= kLimit + 3 * kBlock);
  for (int i = 0; i < 100'000; ++i)
    buffer.append("0123456789");
  CHECK(buffer.memory() <= kLimit + 3 * kBlock);
  CHECK(buffer.bytes().size() == kLimit);
}

TEST_CASE("retention: a one-byte overflow does not move the rest") {
  RetentionBuffer buffer(64U << 20);
  buffer.append(std::string(64U << 20, 'x'));
  // Quadratic work would be 64 TiB here.
  for (int i = 0; i < 1'000'000; ++i)
    buffer.append("y");
  CHECK(buffer.dropped_bytes() == 1'000'000);
  CHECK(buffer.bytes().substr((64U << 20) - 2) == "yy");
}
