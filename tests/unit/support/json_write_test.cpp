#include "sandforge/support/json.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

namespace json = sandforge::json;
using json::Array;
using json::Object;
using json::Value;

namespace {

Value sample() {
  Object inner;
  inner.set("y", Array{1, Value(), false});
  inner.set("x", 2.5);
  Object object;
  object.set("b", std::move(inner));
  object.set("a", Array{});
  object.set("o", Object{});
  return object;
}

}  // namespace

TEST_CASE("json write: compact, pretty and canonical") {
  CHECK(json::write(sample()) == R"({"b":{"y":[1,null,false],"x":2.5},"a":[],"o":{}})");
  CHECK(json::write_canonical(sample()) == R"({"a":[],"b":{"x":2.5,"y":[1,null,false]},"o":{}})");
  CHECK(json::write_pretty(sample()) == R"({
  "b": {
    "y": [
      1,
      null,
      false
    ],
    "x": 2.5
  },
  "a": [],
  "o": {}
}
)");
}

TEST_CASE("json write: doubles are shortest and stay doubles") {
  CHECK(json::write(0.1) == "0.1");
  CHECK(json::write(0.30000000000000004) == "0.30000000000000004");
  CHECK(json::write(1.0) == "1.0");
  CHECK(json::write(-0.0) == "-0.0");
  CHECK(json::write(1e300) == "1e+300");
  CHECK(json::write(5e-324) == "5e-324");
  CHECK(json::write(123456789012345680000.0) == "123456789012345683968.0");
  CHECK(json::write(std::nan("")) == "null");
  CHECK(json::write(-std::numeric_limits<double>::infinity()) == "null");
  CHECK(json::write(std::int64_t{INT64_MIN}) == "-9223372036854775808");
}

TEST_CASE("json write: every double reads back with the same bits") {
  std::uint64_t state = 7;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    double d = 0;
    std::memcpy(&d, &state, sizeof(d));
    if (!std::isfinite(d)) continue;
    const auto result = json::parse(json::write(d));
    REQUIRE(result.ok());
    const double back = result.value.as_number();
    REQUIRE(std::memcmp(&back, &d, sizeof(d)) == 0);
  }
}

TEST_CASE("json write: equal values have equal canonical text") {
  CHECK(json::write_canonical(Value(1.0)) == "1");
  CHECK(json::write_canonical(Value(-0.0)) == "0");
  CHECK(json::write_canonical(Value(1e15)) == "1000000000000000");
  CHECK(json::write_canonical(Value(1e19)) == "1e+19");
  CHECK(json::write_canonical(Value(0.5)) == "0.5");
  const auto a = json::parse(R"({"z":[{"b":1,"a":2}],"a":3})").value;
  const auto b = json::parse(R"({"a":3.0,"z":[{"a":2,"b":1e0}]})").value;
  CHECK(json::write_canonical(a) == json::write_canonical(b));
  CHECK(json::write_canonical(a) == R"({"a":3,"z":[{"a":2,"b":1}]})");
}

TEST_CASE("json write: strings are escaped and always UTF-8") {
  using namespace std::string_view_literals;
  CHECK(json::write("q\" b\\ s/ \b\f\n\r\t \x01\x1f \x7f") ==
        "\"q\\\" b\\\\ s/ \\b\\f\\n\\r\\t \\u0001\\u001f \x7f\"");
  CHECK(json::write(Value("a\0b"sv)) == "\"a\\u0000b\"");
  CHECK(json::write("\xE2\x82\xAC") == "\"\xE2\x82\xAC\"");
  CHECK(json::write("a\xFF\xE2\x82") == "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
  Object bad_key;
  bad_key.set("\xC0", 1);
  CHECK(json::write(bad_key) == "{\"\xEF\xBF\xBD\":1}");
}

TEST_CASE("json write: every byte value reads back from an escaped string") {
  std::string all;
  for (int c = 0; c < 128; ++c)
    all.push_back(static_cast<char>(c));
  CHECK(json::parse(json::write(all)).value.as_string() == all);
}
