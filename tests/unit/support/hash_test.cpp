#include "sandforge/support/hash.hpp"

#include <catch2/catch.hpp>

using sandforge::Sha256;
using sandforge::sha256_hex;

TEST_CASE("sha256: FIPS 180-4 vectors") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                   "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu") ==
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256: pieces of any size give the digest of the whole") {
  std::string text;
  for (int i = 0; i < 300; ++i)
    text.push_back(static_cast<char>(i * 7));
  for (std::size_t length : {55U, 56U, 57U, 63U, 64U, 65U, 119U, 120U, 128U, 300U}) {
    const std::string_view whole = std::string_view(text).substr(0, length);
    for (std::size_t step : {1U, 3U, 63U, 64U, 65U, 200U}) {
      Sha256 hash;
      for (std::size_t at = 0; at < length; at += step)
        hash.update(whole.substr(at, step));
      REQUIRE(hash.finish() == sandforge::sha256(whole));
    }
  }
}

TEST_CASE("sha256: an object starts anew after finish") {
  Sha256 hash;
  hash.update("something").finish();
  CHECK(hash.update("abc").finish_hex() == sha256_hex("abc"));
}
