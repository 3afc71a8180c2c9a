#include "sandforge/wire/runner/bytes.hpp"

#include <string>

#include <catch2/catch.hpp>

using namespace sandforge::wire::runner;

TEST_CASE("numbers of the wire begin with their lowest byte") {
  char out[8] = {};
  store(out, std::uint32_t{0x01020384});
  CHECK(std::string(out, 4) == "\x84\x03\x02\x01");
  CHECK(fetch<std::uint32_t>(out) == 0x01020384);
  store(out, std::int64_t{-2});
  CHECK(fetch<std::int64_t>(out) == -2);
  CHECK(static_cast<unsigned char>(out[0]) == 0xFE);
  CHECK(fetch<std::uint64_t>(std::string_view("\x02\x01", 2)) == 0x0102);
  CHECK(fetch<std::uint64_t>(std::string_view()) == 0);
}
