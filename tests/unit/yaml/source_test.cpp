#include "sandforge/yaml.hpp"

#include <catch2/catch.hpp>

namespace {

using sandforge::format_diagnostic;
using sandforge::Issue;
using sandforge::parse_yaml;
using sandforge::SourcePosition;

std::string at(SourcePosition position) {
  return std::to_string(position.line) + ":" + std::to_string(position.column);
}

}  // namespace

TEST_CASE("The source map knows values and keys", "[yaml]") {
  const auto result = parse_yaml(
      "sandbox:\n"
      "  provider: docker\n"
      "  options:\n"
      "    env: {A/B: x, '3': y}\n"
      "    list:\n"
      "      - one\n"
      "      -   two\n"
      "    empty:\n"
      "other: ~\n");
  REQUIRE(result.ok());
  const auto& source = result.source;
  CHECK(at(source.key("/sandbox")) == "1:1");
  CHECK(at(source.value("/sandbox")) == "2:3");
  CHECK(at(source.key("/sandbox/provider")) == "2:3");
  CHECK(at(source.value("/sandbox/provider")) == "2:13");
  CHECK(at(source.value("/sandbox/options/env")) == "4:10");
  CHECK(at(source.key("/sandbox/options/env/A~1B")) == "4:11");
  CHECK(at(source.value("/sandbox/options/env/A~1B")) == "4:16");
  CHECK(at(source.value("/sandbox/options/env/3")) == "4:24");
  CHECK(at(source.value("/sandbox/options/list/1")) == "7:11");
  CHECK(at(source.key("/sandbox/options/list/1")) == "7:11");
  CHECK(at(source.value("/sandbox/options/empty")) == "8:5");
  CHECK(at(source.value("/other")) == "9:8");
  SECTION("what is not there is where its parent is") {
    CHECK(at(source.value("/sandbox/missing")) == "2:3");
    CHECK(at(source.value("/sandbox/options/list/9")) == "6:7");
    CHECK(at(source.value("/nothing/at/all")) == "1:1");
  }
}

TEST_CASE("Members of an alias are where the alias is", "[yaml]") {
  const auto result = parse_yaml("a: &x {k: 1}\nb: *x\n");
  REQUIRE(result.ok());
  CHECK(at(result.source.value("/a/k")) == "1:11");
  CHECK(at(result.source.value("/b")) == "2:4");
  CHECK(at(result.source.value("/b/k")) == "2:4");
}

TEST_CASE("A diagnostic shows the line with a caret", "[yaml][cases.F01]") {
  const std::string text = "sandbox:\n  cpuCuont: 4\n";
  CHECK(format_diagnostic("config.yaml", text, {2, 3}, "unknown key") ==
        "config.yaml:2:3: unknown key\n"
        "    cpuCuont: 4\n"
        "    ^\n");
  CHECK(format_diagnostic("config.yaml", text, {}, "cannot be read") ==
        "config.yaml: cannot be read\n");
  CHECK(format_diagnostic("f", "a: \xC3\xA4\xC3\xB6 x: 1", {1, 9}, "m") ==
        "f:1:9: m\n"
        "  a: \xC3\xA4\xC3\xB6 x: 1\n"
        "        ^\n");
  CHECK(format_diagnostic("f", "token: secret", {1, 8}, "m", true) ==
        "f:1:8: m\n"
        "  token: …\n"
        "         ^\n");
  CHECK(format_diagnostic("f", "\ta\x1b: 1", {1, 2}, "m") ==
        "f:1:2: m\n"
        "   a : 1\n"
        "   ^\n");
}

TEST_CASE("A long line is cut around the caret", "[yaml]") {
  const std::string line(300, 'x');
  CHECK(format_diagnostic("f", line, {1, 200}, "m") ==
        "f:1:200: m\n  …" + std::string(100, 'x') + "…\n  " + std::string(51, ' ') + "^\n");
  CHECK(format_diagnostic("f", line, {1, 1}, "m") ==
        "f:1:1: m\n  " + std::string(100, 'x') + "…\n  ^\n");
}

TEST_CASE("Issues point at unknown keys and at wrong values", "[yaml][cases.F01]") {
  const std::string text = "cpuCuont: 4\nmemoryMb: lots\n";
  const auto result = parse_yaml(text);
  REQUIRE(result.ok());
  const Issue unknown{"/cpuCuont", "additionalProperties", "unknown key \"cpuCuont\"", "cpuCount",
                      "did you mean \"cpuCount\"?"};
  CHECK(format_diagnostic("c.yaml", text, result.source, unknown) ==
        "c.yaml:1:1: /cpuCuont: unknown key \"cpuCuont\" (allowed: cpuCount); did you mean "
        "\"cpuCount\"?\n"
        "  cpuCuont: 4\n"
        "  ^\n");
  const Issue wrong{"/memoryMb", "type", "expected integer, got string", "", ""};
  CHECK(format_diagnostic("c.yaml", text, result.source, wrong) ==
        "c.yaml:2:11: /memoryMb: expected integer, got string\n"
        "  memoryMb: lots\n"
        "            ^\n");
}
