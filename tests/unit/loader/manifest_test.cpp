#include "sandforge/manifest.hpp"
#include "support/temp_dir.hpp"
#include "unit/loader/fixture_path.hpp"

#include <catch2/catch.hpp>

using namespace sandforge;

namespace {

const std::string kGood = R"({"manifest":1,"name":"sandforge-x","version":"0.1.0",
  "abi":{"major":1,"minor":0},
  "providers":[{"name":"x","displayName":"X","description":"An x","optionsSchema":{"type":"object"}},
               {"name":"y","optionsSchema":{}}],
  "env":["X_ROOT"],"services":["executor","log"],"homepage":"https://example.org","license":"MIT"})";

// kGood with one piece of text replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string mistakes(const std::string& text) {
  const auto result = parse_manifest(text);
  if (result.ok()) return "";
  CHECK(result.error().code == Status::invalid);
  CHECK(result.error().reason == "plugin.manifest_invalid");
  const json::Value* list = result.error().details.find("mistakes");
  if (list == nullptr) return result.error().message;
  std::string out;
  for (const json::Value& entry : list->as_array())
    out += entry.find("pointer")->as_string() + " " + entry.find("message")->as_string() + "\n";
  return out;
}

}  // namespace

TEST_CASE("manifest: every field is read") {
  const auto result = parse_manifest(kGood);
  REQUIRE(result.ok());
  CHECK(result->name == "sandforge-x");
  CHECK(result->version == "0.1.0");
  CHECK(result->abi_major == 1);
  CHECK(result->abi_minor == 0);
  REQUIRE(result->providers.size() == 2);
  CHECK(result->providers[0].name == "x");
  CHECK(result->providers[0].display_name == "X");
  CHECK(result->providers[0].description == "An x");
  CHECK(result->providers[0].options_schema.contains("type"));
  CHECK(result->providers[1].display_name == "y");
  CHECK(result->env == std::vector<std::string>{"X_ROOT"});
  CHECK(result->services == std::vector<std::string>{"executor", "log"});
  CHECK(result->homepage == "https://example.org");
  CHECK(result->license == "MIT");
}

TEST_CASE("manifest: written again it reads the same") {
  const auto first = parse_manifest(kGood);
  REQUIRE(first.ok());
  const auto second = parse_manifest(json::write(to_json(*first)));
  REQUIRE(second.ok());
  CHECK(to_json(*first) == to_json(*second));
}

TEST_CASE("manifest: mistakes are named with their place") {
  CHECK(mistakes("[]") == "the manifest must be a JSON object");
  CHECK(mistakes("{\"manifest\":2}") ==
        "/manifest must be 1, the version of manifests that this program reads");
  CHECK(mistakes("{\"manifest\":1,") == "the manifest is no JSON document: line 1, column 15: " +
                                            json::parse("{\"manifest\":1,").error.message);
  CHECK(mistakes(with("\"license\":\"MIT\"", "\"licence\":\"MIT\"")) ==
        "/licence unknown key, did you mean \"license\"\n");
  CHECK(mistakes(with("sandforge-x", "Sandforge X")) ==
        "/name must be a name: a-z, 0-9, '-', '_' and '.', at most 64 bytes\n");
  CHECK(mistakes(with("\"0.1.0\"", "\"\"")) == "/version must not be empty\n");
  CHECK(mistakes(with("\"0.1.0\"", "\"1\\n2\"")) ==
        "/version must be one line of at most 64 bytes\n");
  CHECK(mistakes(with("\"major\":1", "\"major\":-1")) ==
        "/abi/major must be an integer from 0 to 65535\n");
  CHECK(mistakes(with("\"name\":\"y\"", "\"name\":\"x\"")) ==
        "/providers/1/name is declared twice\n");
  CHECK(mistakes(with("\"optionsSchema\":{}", "\"optionsSchema\":[]")) ==
        "/providers/1/optionsSchema must be an object\n");
  CHECK(mistakes(with("X_ROOT", "X=ROOT")) ==
        "/env/0 must be the name of an environment variable\n");
  CHECK(mistakes(with("\"executor\",\"log\"", "\"log\",\"log\"")) ==
        "/services/1 is listed twice\n");
}

TEST_CASE("manifest: all mistakes at once, and the first in the message") {
  const auto result = parse_manifest(
      R"({"manifest":1,"name":"x","abi":{"major":1,"minor":0,"patch":0},"providers":[]})");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().details.find("mistakes")->as_array().size() == 3);
  CHECK(result.error().message == "the manifest is not valid: /version is missing (and 2 more)");
}

TEST_CASE("manifest: limits") {
  std::string many = "[";
  for (int i = 0; i < 300; ++i)
    many += (i > 0 ? ",\"V" : "\"V") + std::to_string(i) + "\"";
  CHECK(mistakes(with("[\"X_ROOT\"]", many + "]")) ==
        "/env must be an array of at most 256 names\n");
  CHECK_FALSE(parse_manifest(std::string(2U << 20, ' ')).ok());
  std::string deep = with("\"optionsSchema\":{}",
                          "\"optionsSchema\":" + std::string(500, '[') + std::string(500, ']'));
  CHECK_FALSE(parse_manifest(deep).ok());
}

TEST_CASE("manifest: read from a plugin's file without loading it") {
  const std::string bytes = test::read_file(test::fixture("good_a"));
  const auto text = manifest_text(std::as_bytes(std::span(bytes)));
  REQUIRE(text.ok());
  const auto manifest = parse_manifest(*text);
  REQUIRE(manifest.ok());
  CHECK(manifest->name == "good-a");
  CHECK(manifest->env == std::vector<std::string>{"FIXTURE_TOKEN"});
}
