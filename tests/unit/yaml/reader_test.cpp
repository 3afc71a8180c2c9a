#include "sandforge/yaml.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace {

using sandforge::parse_yaml;
namespace json = sandforge::json;

std::string as_json(std::string_view text) {
  const auto result = parse_yaml(text);
  if (result) return json::write(result.value);
  return "error " + std::to_string(result.error.at.line) + ":" +
         std::to_string(result.error.at.column) + " " + result.error.message;
}

struct Row {
  std::string text;
  std::string expected;
};

void check_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(as_json(row.text) == row.expected);
  }
}

std::string repeat(const std::string& part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i)
    out += part;
  return out;
}

void check_refused(const std::string& text, const std::string& message) {
  const auto started = std::chrono::steady_clock::now();
  const auto result = parse_yaml(text);
  CHECK_FALSE(result.ok());
  CHECK_THAT(result.error.message, Catch::Contains(message));
  CHECK(result.error.at.line >= 1);
  CHECK(result.error.at.column >= 1);
  CHECK(std::chrono::steady_clock::now() - started < std::chrono::seconds(60));
}

}  // namespace

TEST_CASE("Plain scalars follow the YAML 1.2 core rules", "[yaml][cases.F06]") {
  check_rows({
      {"a: no", R"({"a":"no"})"},
      {"a: No", R"({"a":"No"})"},
      {"a: on", R"({"a":"on"})"},
      {"a: off", R"({"a":"off"})"},
      {"a: yes", R"({"a":"yes"})"},
      {"a: y", R"({"a":"y"})"},
      {"a: n", R"({"a":"n"})"},
      {"a: true", R"({"a":true})"},
      {"a: True", R"({"a":true})"},
      {"a: TRUE", R"({"a":true})"},
      {"a: tRUE", R"({"a":"tRUE"})"},
      {"a: false", R"({"a":false})"},
      {"a: False", R"({"a":false})"},
      {"a: FALSE", R"({"a":false})"},
      {"a: 1_000", R"({"a":"1_000"})"},
      {"a: 0o17", R"({"a":15})"},
      {"a: 0O17", R"({"a":"0O17"})"},
      {"a: 0o18", R"({"a":"0o18"})"},
      {"a: 0x1F", R"({"a":31})"},
      {"a: -0x1F", R"({"a":"-0x1F"})"},
      {"a: 0b1", R"({"a":"0b1"})"},
      {"a: 12:30:45", R"({"a":"12:30:45"})"},
      {"a: 2024-01-01", R"({"a":"2024-01-01"})"},
      {"a: inf", R"({"a":"inf"})"},
      {"a: 0", R"({"a":0})"},
      {"a: -0", R"({"a":0})"},
      {"a: +3", R"({"a":3})"},
      {"a: -12", R"({"a":-12})"},
      {"a: 9223372036854775807", R"({"a":9223372036854775807})"},
      {"a: -9223372036854775808", R"({"a":-9223372036854775808})"},
      {"a: 1.5", R"({"a":1.5})"},
      {"a: .5", R"({"a":0.5})"},
      {"a: 5.", R"({"a":5.0})"},
      {"a: 1e3", R"({"a":1000.0})"},
      {"a: +1.5E-2", R"({"a":0.015})"},
      {"a: 1e", R"({"a":"1e"})"},
      {"a: .", R"({"a":"."})"},
      {"a: ~", R"({"a":null})"},
      {"a: null", R"({"a":null})"},
      {"a: Null", R"({"a":null})"},
      {"a: NULL", R"({"a":null})"},
      {"a: nULL", R"({"a":"nULL"})"},
      {"a:", R"({"a":null})"},
  });
}

TEST_CASE("Quotes, blocks and tags decide the type", "[yaml][cases.F06]") {
  check_rows({
      {"a: '12'", R"({"a":"12"})"},
      {"a: \"no\"", R"({"a":"no"})"},
      {"a: 'true'", R"({"a":"true"})"},
      {"a: ''", R"({"a":""})"},
      {"a: '~'", R"({"a":"~"})"},
      {"a: |\n  12\n", R"({"a":"12\n"})"},
      {"a: >-\n  x\n  y\n", R"({"a":"x y"})"},
      {"a: !!str 12", R"({"a":"12"})"},
      {"a: ! 12", R"({"a":"12"})"},
      {"a: !!int '12'", R"({"a":12})"},
      {"a: !!float 1", R"({"a":1.0})"},
      {"a: !!bool 'true'", R"({"a":true})"},
      {"a: !!null ''", R"({"a":null})"},
      {"!!map {a: 1}", R"({"a":1})"},
      {"a: !!seq [1]", R"({"a":[1]})"},
  });
}

TEST_CASE("What readers disagree about is an error with line and column", "[yaml][cases.F06]") {
  const std::string zero =
      " has a leading zero, which readers take for octal or decimal; write 0o… for octal, leave "
      "the "
      "zero out, or put it in quotes";
  const std::string json_number = " has no place in JSON; put it in quotes if it is text";
  check_rows({
      {"a: 012", "error 1:4 the number 012" + zero},
      {"a: 08", "error 1:4 the number 08" + zero},
      {"a: -01", "error 1:4 the number -01" + zero},
      {"x: 1\na: .inf", "error 2:4 the number .inf" + json_number},
      {"a: -.INF", "error 1:4 the number -.INF" + json_number},
      {"a: .nan", "error 1:4 the number .nan" + json_number},
      {"a: 9223372036854775808",
       "error 1:4 the integer 9223372036854775808 does not fit into 64 bits; put it in quotes if "
       "it "
       "is text"},
      {"a: 1e999", "error 1:4 the number 1e999 is out of range"},
      {"a: !foo x", "error 1:4 the tag !foo is not supported"},
      {"a: !!binary eA==", "error 1:4 the tag !!binary is not supported"},
      {"a: !!set {x}", "error 1:4 the tag !!set is not supported"},
      {"a: !!timestamp 2024-01-01", "error 1:4 the tag !!timestamp is not supported"},
      {"a: !!int abc", "error 1:4 \"abc\" does not fit the tag !!int"},
      {"a: !!bool yes", "error 1:4 \"yes\" does not fit the tag !!bool"},
      {"a: !!map [1]", "error 1:4 the value does not fit the tag !!map"},
      {"a: !!map x", "error 1:4 \"x\" does not fit the tag !!map"},
  });
}

TEST_CASE("Keys are names, given once", "[yaml][cases.F06]") {
  const std::string merge = "merge keys are not supported; put \"<<\" in quotes if it is a name";
  check_rows({
      {"1: x\ntrue: y\n012: z", R"({"1":"x","true":"y","012":"z"})"},
      {"'<<': 1", R"({"<<":1})"},
      {"b: &b {x: 1}\na:\n  <<: *b", "error 3:3 " + merge},
      {"a: 1\nb: 2\na: 3", "error 3:1 the key \"a\" is given twice"},
      {"1: x\n'1': y", "error 2:1 the key \"1\" is given twice"},
      {"? [a]\n: b", "error 1:3 a key must be a name, not a list or a map"},
      {"{a: 1}: b", "error 1:1 a key must be a name, not a list or a map"},
      {"~: 1", "error 1:1 a key must not be empty or null"},
      {": 1", "error 1:1 a key must not be empty or null"},
      {"a: &a x\n*a : 1", "error 2:1 an alias cannot be a key"},
      {"!!int 1: x", "error 1:1 a key must be a plain name, without the tag !!int"},
      {"? b\n", R"({"b":null})"},
      {"a: 1\nfoo", "error 2:1 a colon is missing after the key \"foo\""},
  });
}

TEST_CASE("Anchors are copied, and counted", "[yaml][cases.F06]") {
  check_rows({
      {"x: &a [1, 2]\ny: *a", R"({"x":[1,2],"y":[1,2]})"},
      {"a: &x 5\nb: *x\nc: &x 6\nd: *x", R"({"a":5,"b":5,"c":6,"d":6})"},
      {"&k key: *k", R"({"key":"key"})"},
      {"a: *x", "error 1:4 the referenced anchor is not defined"},
      {"&a [*a]", "error 1:5 an alias must not stand inside of what it refers to"},
      {"&a {b: [*a]}", "error 1:9 an alias must not stand inside of what it refers to"},
  });
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before +
            repeat("," + before, 8) + "]\n";
  }
  check_refused(bomb, "more than 100000 values");
  std::string deep = "- &a0 [x]\n";
  for (int i = 1; i < 70; ++i) {
    deep += "- &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  }
  check_refused(deep, "nests deeper than 64 levels");
  check_refused("[" + repeat("&a [", 60) + repeat("1,", 2000) + repeat("]", 60) + "]",
                "anchors stand for more than 100000 values");
}

TEST_CASE("Exactly one document", "[yaml]") {
  const std::string more =
      " another document starts here, only one is allowed; is the indentation right?";
  check_rows({
      {"", "{}"},
      {"# only a comment\n", "{}"},
      {"---\n", "{}"},
      {"  \n\n", "{}"},
      {"---\na: 1\n...\n", R"({"a":1})"},
      {"%YAML 1.1\n---\na: no", R"({"a":"no"})"},
      {"[1, 2]", "[1,2]"},
      {"plain", R"("plain")"},
      {"---\na: 1\n---\nb: 2\n", "error 3:1" + more},
      {"- a\n-b\n", "error 2:1" + more},
      {"\n  a: 1\nb: 2\n", "error 3:1" + more},
      {"{a: 1} x", "error 1:8" + more},
  });
}

TEST_CASE("Unclosed quotes never swallow the rest of a file", "[yaml]") {
  for (const char* quote : {"\"", "'"}) {
    for (const char* end : {"", "\n", "\n\n", "  \n", "\r\n", "\n# c\n"}) {
      const std::string text = std::string("a: ") + quote + "x\nb: 2" + end;
      CAPTURE(text);
      CHECK_THAT(as_json(text), Catch::EndsWith("a quote is not closed"));
    }
  }
}

TEST_CASE("Bytes that no configuration needs are refused", "[yaml][cases.F06]") {
  using std::string_literals::operator""s;
  check_rows({
      {"a: x\0y"s, "error 1:5 a NUL byte is not allowed (0x00)"},
      {"a: 'x\0y'"s, "error 1:6 a NUL byte is not allowed (0x00)"},
      {"a: 1\nb: \x01", "error 2:4 a control character is not allowed (0x01)"},
      {"a: \x1b[31m", "error 1:4 a control character is not allowed (0x1b)"},
      {"a: \x7f", "error 1:4 a control character is not allowed (0x7f)"},
      {"a: 1\rb: 2", "error 1:5 a carriage return without a line feed is not allowed (0x0d)"},
      {"a: 1\nb: \xff", "error 2:4 the document is not UTF-8"},
      {"a: \xc0\xaf", "error 1:4 the document is not UTF-8"},
      {"a: \xed\xa0\x80", "error 1:4 the document is not UTF-8"},
      {"a: \xc3", "error 1:4 the document is not UTF-8"},
      {"\xff\xfe"
       "a\0:\0"s,
       "error 1:4 a NUL byte is not allowed (0x00)"},
      {"\xEF\xBB\xBF"
       "a: 1",
       R"({"a":1})"},
      {"a: 1\r\nb: 2\r\n", R"({"a":1,"b":2})"},
      {"a: \"x\ty\"", R"({"a":"x\ty"})"},
      {"a:\n\tb: 1\n", "error 2:3 tabs cannot indent a line; use spaces"},
      {"\ta: 1", "error 1:3 tabs cannot indent a line; use spaces"},
      {"a: \"\\ud83d\\ude00\"",
       "error 1:11 an escape that is no character; write the character itself"},
  });
}

TEST_CASE("Escapes give whole characters", "[yaml]") {
  check_rows({
      {R"(a: "\N")", "{\"a\":\"\xC2\x85\"}"},
      {R"(a: "x\_\Ny")", "{\"a\":\"x\xC2\xA0\xC2\x85y\"}"},
      {"a: \"\xC3\xA9\\_\xE2\x82\xAC\\N\xF0\x9F\x98\x80\"",
       "{\"a\":\"\xC3\xA9\xC2\xA0\xE2\x82\xAC\xC2\x85\xF0\x9F\x98\x80\"}"},
      {R"("\N": "\x85\xa0\L\P")", "{\"\xC2\x85\":\"\xC2\x85\xC2\xA0\xE2\x80\xA8\xE2\x80\xA9\"}"},
  });
}

TEST_CASE("Hostile shapes end within a bound", "[yaml][cases.F06]") {
  check_refused(repeat("[", 100000), "nests too deep");
  check_refused(repeat("- ", 100000), "nests too deep");
  check_refused(repeat("? ", 100000), "nests too deep");
  check_refused(repeat("[", 65) + repeat("]", 65), "nests deeper than 64 levels");
  CHECK(parse_yaml(repeat("[", 64) + repeat("]", 64)).ok());
  check_refused(std::string(1048577, 'x'), "larger than 1048576 bytes");
  check_refused("[" + repeat("1,", 100000) + "1]", "more than 100000 values");
  check_refused(std::string(500000, ':'), "");
  check_refused(std::string(2000, 'k') + ": 1", "");
  CHECK(parse_yaml("a: '" + std::string(1000000, 'x') + "'").ok());
}

TEST_CASE("Limits can be given", "[yaml]") {
  sandforge::YamlLimits limits;
  limits.bytes = 10;
  limits.depth = 2;
  limits.nodes = 3;
  CHECK(parse_yaml("[1, 2]", limits).ok());
  CHECK_FALSE(parse_yaml("[1, 2, 3]", limits).ok());
  CHECK_FALSE(parse_yaml("[[[1]]]", limits).ok());
  CHECK_FALSE(parse_yaml("a: 12345678", limits).ok());
}

TEST_CASE("Syntax errors say where", "[yaml]") {
  check_rows({
      {"a: [1, 2", "error 1:1 a [ is not closed"},
      {"{a: ${B}}",
       "error 1:6 a { is not closed; a text with braces, such as \"${NAME}\", wants quotes here"},
      {"a: b: c", "error 1:5 a value is not expected here; is a quote or a line break missing?"},
      {"a: @x", "error 1:4 unknown token"},
      {"a: - b", "error 1:4 illegal block entry"},
  });
}
