#include "sandforge/support/encoding.hpp"

#include <catch2/catch.hpp>

using namespace sandforge;

namespace {

std::string all_bytes() {
  std::string bytes;
  for (int i = 0; i < 256; ++i)
    bytes.push_back(static_cast<char>(i));
  return bytes;
}

}  // namespace

TEST_CASE("base64: the vectors of RFC 4648") {
  const std::pair<const char*, const char*> rows[] = {{"", ""},
                                                      {"f", "Zg=="},
                                                      {"fo", "Zm8="},
                                                      {"foo", "Zm9v"},
                                                      {"foob", "Zm9vYg=="},
                                                      {"fooba", "Zm9vYmE="},
                                                      {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : rows) {
    CHECK(base64_encode(bytes) == text);
    CHECK(base64_decode(text) == std::string(bytes));
  }
}

TEST_CASE("base64: what the encoder would not write is refused") {
  for (const char* bad : {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Zh==", "Zm9=", "Zm9v\n", "Zm 9v",
                          "Zg==Zg==", "Z===", "Zm9-", "Zm9_", "Zm9v=", "Z\xC3\xA9v"}) {
    INFO(bad);
    CHECK_FALSE(base64_decode(bad));
  }
}

TEST_CASE("base64url: other alphabet, no padding") {
  CHECK(base64url_encode("\xFB\xFF\xFE") == "-__-");
  CHECK(base64_encode("\xFB\xFF\xFE") == "+//+");
  CHECK(base64url_encode("f") == "Zg");
  CHECK(base64url_decode("Zm8") == std::string("fo"));
  for (const char* bad : {"Zg==", "Zm9+", "Zm9/", "Z", "Zh", "Zm8="}) {
    INFO(bad);
    CHECK_FALSE(base64url_decode(bad));
  }
}

TEST_CASE("encodings: every byte survives at every alignment") {
  const std::string bytes = all_bytes();
  for (std::size_t from = 0; from < 4; ++from) {
    const std::string_view part = std::string_view(bytes).substr(from);
    CHECK(base64_decode(base64_encode(part)) == part);
    CHECK(base64url_decode(base64url_encode(part)) == part);
    CHECK(hex_decode(hex_encode(part)) == part);
    CHECK(percent_decode(percent_encode(part)) == part);
  }
}

TEST_CASE("hex: digits and refusals") {
  CHECK(hex_encode("\x01\xAB\xFF") == "01abff");
  CHECK(hex_decode("01aBFf") == std::string("\x01\xAB\xFF"));
  for (const char* bad : {"0", "0g", "g0", "0x", " 0"})
    CHECK_FALSE(hex_decode(bad));
}

TEST_CASE("percent: what is kept and what is refused") {
  CHECK(percent_encode("aZ09-._~ /+%\xC3\xA9") == "aZ09-._~%20%2F%2B%25%C3%A9");
  CHECK(percent_encode_path("/a b/c") == "/a%20b/c");
  CHECK(percent_encode(std::string_view("\0", 1)) == "%00");
  CHECK(percent_decode("a%2fb+c%C3%A9") == std::string("a/b+c\xC3\xA9"));
  for (const char* bad : {"%", "%2", "%g0", "%0g", "a%", "%%20"}) {
    INFO(bad);
    CHECK_FALSE(percent_decode(bad));
  }
}
