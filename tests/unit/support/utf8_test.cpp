#include "sandforge/support/utf8.hpp"

#include <catch2/catch.hpp>

using sandforge::is_valid_utf8;
using sandforge::to_valid_utf8;
using sandforge::Utf8Check;
using sandforge::Utf8Decoder;

namespace {

const std::string kBad = "\xEF\xBF\xBD";

// Text in which each `?` stands for U+FFFD.
std::string with_bad(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '?') {
      out += kBad;
    } else {
      out.push_back(c);
    }
  }
  return out;
}

struct Row {
  const char* bytes;
  const char* text;
};

// One replacement per maximal subpart: the examples of Unicode 15, section 3.9, and more.
const Row kRows[] = {
    {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "????????A"},
    {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "????????A"},
    {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "?????A??B"},
    {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "????A"},
    {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64", "a???b?c??d"},
    {"\xF0\x9F\x98", "?"},
    {"\xF0\x9F\x98\x41", "?A"},
    {"\xF0\x9F\xF0\x9F\x98\x80", "?\xF0\x9F\x98\x80"},
    {"\xC2\xC2\xA9", "?\xC2\xA9"},
    {"\xF8\x88\x80\x80\x80", "?????"},
    {"\xFE\xFF", "??"},
};

}  // namespace

TEST_CASE("utf8: one replacement per maximal subpart") {
  for (const Row& row : kRows) {
    INFO(row.text);
    CHECK(to_valid_utf8(row.bytes) == with_bad(row.text));
    CHECK_FALSE(is_valid_utf8(row.bytes));
    CHECK(is_valid_utf8(to_valid_utf8(row.bytes)));
  }
}

TEST_CASE("utf8: what is no ASCII is found wherever it stands") {
  const std::string plain(40, 'a');
  CHECK(to_valid_utf8(plain) == plain);
  for (std::size_t at = 0; at <= plain.size(); ++at) {
    INFO(at);
    const std::string good = plain.substr(0, at) + "\xC2\xA9" + plain.substr(at);
    CHECK(is_valid_utf8(good));
    CHECK(to_valid_utf8(good) == good);
    CHECK(Utf8Decoder().count(good) == good.size());
    const std::string bad = plain.substr(0, at) + "\x80" + plain.substr(at);
    CHECK_FALSE(is_valid_utf8(bad));
    CHECK(to_valid_utf8(bad) == plain.substr(0, at) + kBad + plain.substr(at));
  }
}

TEST_CASE("utf8: the edges of what is valid") {
  for (const char* good :
       {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "\xEF\xBB\xBFx"}) {
    CHECK(is_valid_utf8(good));
    CHECK(to_valid_utf8(good) == good);
    Utf8Check check;
    for (const char* byte = good; *byte != '\0'; ++byte)
      CHECK(check.take(std::string_view(byte, 1)));
    CHECK(check.whole());
  }
  CHECK(is_valid_utf8(std::string_view("a\0b", 3)));
}

TEST_CASE("utf8: a check says at once that a text is wrong, and when it is cut short") {
  for (const Row& row : kRows) {
    INFO(row.text);
    const std::string_view bytes = row.bytes;
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      Utf8Check check;
      const bool good = check.take(bytes.substr(0, cut)) && check.take(bytes.substr(cut));
      CHECK((good && check.whole()) == is_valid_utf8(bytes));
    }
  }
  Utf8Check check;
  CHECK(check.take("a\xF0\x9F"));
  CHECK_FALSE(check.whole());
  Utf8Check copy = check;
  CHECK(copy.take("\x98\x80"));
  CHECK(copy.whole());
  CHECK_FALSE(check.take("b"));
}

TEST_CASE("utf8: chunks of any size give the same text") {
  std::string bytes;
  for (const Row& row : kRows)
    bytes += std::string("x") + row.bytes + "\xE2\x82\xAC";
  const std::string expected = to_valid_utf8(bytes);
  for (std::size_t size = 1; size < 9; ++size) {
    Utf8Decoder decoder;
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      decoder.decode(std::string_view(bytes).substr(at, size), text);
      CHECK(decoder.pending() < 4);
    }
    decoder.flush(text);
    CHECK(text == expected);
  }
}

TEST_CASE("utf8: text appears as soon as it is complete") {
  Utf8Decoder decoder;
  CHECK(decoder.decode("a\xF0\x9F") == "a");
  CHECK(decoder.pending() == 2);
  CHECK(decoder.decode("\x98") == "");
  CHECK(decoder.decode("\x80z") == "\xF0\x9F\x98\x80z");
  CHECK(decoder.pending() == 0);
  CHECK(decoder.flush() == "");
}

TEST_CASE("utf8: a flushed decoder starts anew") {
  Utf8Decoder decoder;
  CHECK(decoder.decode("\xE2\x82") == "");
  CHECK(decoder.flush() == kBad);
  CHECK(decoder.flush() == "");
  CHECK(decoder.decode("\xAC") == kBad);
  CHECK(decoder.decode("ok") == "ok");
}

TEST_CASE("utf8: foreign text that is shown moves no cursor") {
  using sandforge::escape_controls;
  CHECK(escape_controls("plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xC2\xA0") ==
        "plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xC2\xA0");
  CHECK(escape_controls("a\x1b[2J\r\n\t\x7f") == "a\\x1b[2J\\r\\n\\t\\x7f");
  CHECK(escape_controls("a\nb\tc\r", "\n\t") == "a\nb\tc\\r");
  CHECK(escape_controls("\xC2\x80\xC2\x9B\xC2\x9F") == "\\u{80}\\u{9b}\\u{9f}");
  CHECK(escape_controls("\xE2\x80\xAE\xE2\x81\xA6\xE2\x80\xA8\xE2\x80\x8F") ==
        "\\u{202e}\\u{2066}\\u{2028}\\u{200f}");
  CHECK(escape_controls("\x9b\xff") == with_bad("??"));
  CHECK(escape_controls(std::string_view("\0", 1)) == "\\x00");
}
