#include "sandforge/support/json.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

namespace json = sandforge::json;
using json::Value;

namespace {

double number(std::string_view text) {
  const auto result = json::parse(text);
  INFO(text << ": " << result.error.message);
  REQUIRE(result.ok());
  REQUIRE(result.value.kind() == json::Kind::number);
  return result.value.as_number();
}

std::string error_of(std::string_view text, const json::Limits& limits = {}) {
  const auto result = json::parse(text, limits);
  INFO(text.substr(0, 200));
  CHECK_FALSE(result.ok());
  return result.error.message;
}

std::string repeat(std::string_view part, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i)
    out += part;
  return out;
}

}  // namespace

TEST_CASE("json parse: numbers that crash or confuse other conversions") {
  CHECK(number("835.000000200039084e-336") == 0);
  CHECK(number("97.00028000081005e-335") == 0);
  CHECK(json::parse(R"({"a":835.000000200039084e-336})").ok());
  CHECK(number("1.0000000000e-2147483639") == 0);
  CHECK(number("1e-99999999999999999999999999") == 0);
  CHECK(number("0.000000000000000000000000000000e308") == 0);
  CHECK(number("0.1e1") == 1);
  CHECK(number("5e-324") == 5e-324);
  CHECK(number("0.30000000000000004") == 0.30000000000000004);
  CHECK(number("1.7976931348623157e308") == 1.7976931348623157e308);
  CHECK(number("0." + std::string(400, '0') + "1e+5") == 0);
  CHECK(std::signbit(number("-0")));
  CHECK(std::signbit(number("-1e-400")));
}

TEST_CASE("json parse: numbers that are not finite or do not fit are refused") {
  for (const char* text : {"1e400", "-1e400", "1.7976931348623159e308", "1.8e308", "-2.5e308",
                           "1e99999999999999999999"}) {
    CHECK(error_of(text) == "the number is out of range");
  }
  CHECK(error_of(std::string(400, '9') + ".5") == "the number is out of range");
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "18446744073709551615",
                           "18446744073709551616", "99999999999999999999999999"}) {
    CHECK(error_of(text) == "the integer does not fit in 64 bits");
  }
  CHECK(json::parse("9223372036854775807").value.as_integer() == INT64_MAX);
  CHECK(json::parse("-9223372036854775808").value.as_integer() == INT64_MIN);
}

TEST_CASE("json parse: integral doubles stay doubles and equal integers") {
  for (const char* text : {"1.0", "1e0", "100e-2", "1E+0"})
    CHECK(number(text) == 1);
  CHECK(json::parse("1.0").value == Value(1));
  CHECK(json::parse("1e3").value == Value(1000));
  CHECK(json::parse("-0").value == Value(0));
  CHECK(json::parse("0").value.is_integer());
}

TEST_CASE("json parse: doubles are exact") {
  std::uint64_t state = 1;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::string text = std::to_string(state >> 40) + "." + std::to_string(state) + "e" +
                             std::to_string(static_cast<int>(state >> 33) % 300);
    const double expected = std::strtod(text.c_str(), nullptr);
    if (std::isinf(expected)) continue;
    const auto result = json::parse(text);
    // An exponent that only leading digits push beyond 308 is refused, as documented.
    if (!result.ok()) continue;
    REQUIRE(result.value.as_number() == expected);
  }
}

TEST_CASE("json parse: what is no JSON is refused") {
  for (const char* text : {"",
                           " ",
                           "NaN",
                           "Infinity",
                           "-Infinity",
                           "-",
                           "+1",
                           ".5",
                           "1.",
                           "01",
                           "1e",
                           "1e+",
                           "0x10",
                           "tru",
                           "nul",
                           "True",
                           "'a'",
                           "[1,]",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{1:2}",
                           "[1 2]",
                           "[",
                           "{",
                           "]",
                           "}",
                           "[}",
                           "{]",
                           "/*c*/1",
                           "1//c",
                           "\"a",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"\t\"",
                           "\"a\nb\"",
                           ",",
                           ":",
                           "[,1]",
                           "{\"a\":1 \"b\":2}",
                           "\xC2\xA0"}) {
    INFO(text);
    CHECK_FALSE(json::parse(text).ok());
  }
}

TEST_CASE("json parse: trailing data is refused") {
  CHECK(error_of("1 2") == "there is more text after the value");
  CHECK(error_of("{} {}") == "there is more text after the value");
  CHECK(error_of("[]]") == "there is more text after the value");
  CHECK(json::parse(" 1 \r\n\t").ok());
}

TEST_CASE("json parse: NUL is refused unless it is escaped") {
  using namespace std::string_view_literals;
  CHECK(error_of("1\0 2"sv) == "the document holds a NUL byte");
  CHECK(error_of("\"a\0b\""sv) == "the document holds a NUL byte");
  CHECK(error_of("{}\0"sv) == "the document holds a NUL byte");
  CHECK(json::parse("1\0 2"sv).error.offset == 1);
  CHECK(json::parse(R"("a\u0000b")").value.as_string() == "a\0b"sv);
}

TEST_CASE("json parse: duplicate keys are refused") {
  const auto result = json::parse("{\"a\":1,\n \"b\":2, \"a\":3}");
  CHECK(result.error.message == "the key \"a\" appears twice");
  CHECK(result.error.offset == 16);
  CHECK(result.error.line == 2);
  CHECK(result.error.column == 9);
  CHECK(error_of(R"({"a":1,"\u0061":2})") == "the key \"a\" appears twice");
  CHECK(error_of(R"([{"x":{"":1,"":2}}])") == "the key \"\" appears twice");
  CHECK(json::parse(R"({"a":{"a":1},"b":{"a":1}})").ok());
}

TEST_CASE("json parse: an object with very many keys is not quadratic") {
  std::string text = "{";
  for (int i = 0; i < 90'000; ++i)
    text += "\"key" + std::to_string(i) + "\":0,";
  json::Limits limits;
  limits.bytes = 4U << 20;
  const auto good = json::parse(text + "\"last\":0}", limits);
  REQUIRE(good.ok());
  CHECK(good.value.as_object().size() == 90'001);
  CHECK(error_of(text + "\"key7\":0}", limits) == "the key \"key7\" appears twice");
}

TEST_CASE("json parse: lone surrogates are refused in both directions") {
  for (const char* text : {R"("\ud800")", R"("\udc00")", R"("\udc00\ud800")", R"("\ud800\ud800")",
                           R"("\ud800x")", R"("\ud800\u0041")", R"({"\udfff":1})"}) {
    CHECK(error_of(text) == "the string holds a lone surrogate");
  }
  CHECK(json::parse(R"("\ud83d\ude00")").value.as_string() == "\xF0\x9F\x98\x80");
}

TEST_CASE("json parse: invalid UTF-8 is refused") {
  for (const char* bytes : {"\xFF", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\x80",
                            "\xF4\x90\x80\x80", "\xF0\x80\x80\x80", "\xE2\x82"}) {
    CHECK_FALSE(json::parse("\"" + std::string(bytes) + "\"").ok());
    CHECK_FALSE(json::parse("{\"" + std::string(bytes) + "\":1}").ok());
    CHECK_FALSE(json::parse("1" + std::string(bytes)).ok());
  }
  CHECK(json::parse("\"\xF4\x8F\xBF\xBF\"").ok());
}

TEST_CASE("json parse: a byte order mark at the start is skipped") {
  CHECK(json::parse("\xEF\xBB\xBF{}").ok());
  CHECK_FALSE(json::parse("{}\xEF\xBB\xBF").ok());
  CHECK_FALSE(json::parse("\xEF\xBB\xBF\xEF\xBB\xBF{}").ok());
  CHECK_FALSE(json::parse("\xEF\xBB\xBF").ok());
}

TEST_CASE("json parse: limits hold at their edge") {
  json::Limits limits;
  limits.depth = 3;
  CHECK(json::parse("[[[1]]]", limits).ok());
  CHECK(error_of("[[[[1]]]]", limits) == "the document is nested too deeply");
  CHECK(error_of(R"({"a":{"a":{"a":{}}}})", limits) == "the document is nested too deeply");

  limits = {};
  limits.nodes = 3;
  CHECK(json::parse("[1,2]", limits).ok());
  CHECK(error_of("[1,2,3]", limits) == "the document has too many values");

  limits = {};
  limits.string_bytes = 3;
  CHECK(json::parse(R"({"abc":"\u20ac"})", limits).ok());
  CHECK(error_of(R"("abcd")", limits) == "the string is too long");
  CHECK(error_of(R"({"abcd":1})", limits) == "the string is too long");

  limits = {};
  limits.bytes = 4;
  CHECK(json::parse("1234", limits).ok());
  CHECK(error_of("12345", limits) == "the document is too large");
}

TEST_CASE("json parse: deep nesting neither crashes the reader nor the value") {
  json::Limits limits;
  limits.bytes = 64U << 20;
  limits.depth = 10'000'000;
  CHECK(error_of(std::string(5'000'000, '['), limits) == "the document is nested too deeply");
  CHECK(error_of(repeat("{\"a\":", 100'000), limits) == "the document is nested too deeply");
  const std::string deepest = std::string(512, '[') + std::string(512, ']');
  const auto result = json::parse(deepest, limits);
  REQUIRE(result.ok());
  const Value copy = result.value;
  CHECK(copy == result.value);
  CHECK(json::write(copy) == deepest);
  CHECK(error_of("[" + deepest + "]", limits) == "the document is nested too deeply");
}

TEST_CASE("json parse: errors tell the place") {
  struct Row {
    const char* text;
    const char* message;
    std::size_t offset, line, column;
  };
  const Row rows[] = {
      {"", "the document is empty", 0, 1, 1},
      {"{\n  \"a\": tru\n}", "expected a value", 12, 2, 11},
      {"{\n  \"a\": 1e400\n}", "the number is out of range", 9, 2, 8},
      {"[1,\n\n 99999999999999999999]", "the integer does not fit in 64 bits", 6, 3, 2},
      {"[\"\\udc00\"]", "the string holds a lone surrogate", 1, 1, 2},
      {"[1 2]", "expected ',' or ']' after the element", 3, 1, 4},
      {"{\"a\" 1}", "expected ':' after the key", 5, 1, 6},
      {"{a}", "expected a key in quotes", 1, 1, 2},
      {"[1,]", "expected a value", 3, 1, 4},
      {"\"abc", "the string has no closing quote", 4, 1, 5},
      {"[\"\\q\"]", "a control character or an unknown escape in the string", 2, 1, 3},
      {"[\"\xFF\"]", "the string is not valid UTF-8", 2, 1, 3},
      {"[1", "expected ',' or ']' after the element", 2, 1, 3},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const auto error = json::parse(row.text).error;
    CHECK(error.message == row.message);
    CHECK(error.offset == row.offset);
    CHECK(error.line == row.line);
    CHECK(error.column == row.column);
  }
}
