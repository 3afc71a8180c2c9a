// The published documents: they pass the engine, and they agree with what the code does.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "helpers.hpp"
#include "test_paths.hpp"

using namespace schema_test;
using sandforge::SchemaProfile;

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string published(const char* name) {
  return read_file(fs::path(SANDFORGE_SOURCE_DIR) / "schemas" / name);
}

}  // namespace

TEST_CASE("Every published schema compiles", "[published]") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(SANDFORGE_SOURCE_DIR) / "schemas")) {
    const std::string name = entry.path().filename().string();
    if (name.find(".schema.json") == std::string::npos) continue;
    CAPTURE(name);
    ++count;
    CHECK(lint(read_file(entry.path()), SchemaProfile::full) == "ok");
  }
  CHECK(count >= 2);
}

TEST_CASE("The settings meta-schema and the check at load agree", "[published]") {
  const auto meta = compile(published("settings-meta.schema.json"));
  const auto agree = [&](const std::string& schema, bool good) {
    CAPTURE(schema, format_issues(meta->validate(parse(schema))));
    CHECK(meta->accepts(parse(schema)) == good);
    CHECK((lint(schema, SchemaProfile::settings) == "ok") == good);
  };
  agree(R"({"type":"object","additionalProperties":false})", true);
  agree(R"({"type":"object","additionalProperties":false,"properties":{}})", true);
  agree(R"({"$schema":"http://json-schema.org/draft-07/schema#","title":"t","description":"d",
            "$comment":"c","type":"object","additionalProperties":false,"x-order":["a"],
            "properties":{"a":{"type":"string"}}})",
        true);
  agree("{}", false);
  agree("true", false);
  agree(R"({"type":"object"})", false);
  agree(R"({"type":"object","additionalProperties":true})", false);
  agree(R"({"type":"array","additionalProperties":false})", false);
  agree(R"({"type":"object","additionalProperties":false,"required":[]})", false);
  agree(R"({"type":"object","additionalProperties":false,"definitions":{}})", false);
  agree(R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"object",
            "additionalProperties":false})",
        false);
  agree(R"({"$id":"https://example.com/a","type":"object","additionalProperties":false})", false);

  const char* good[] = {
      R"({"type":"string"})",
      R"({"type":"string","enum":["a","b"],"x-enumTitles":["A","B"],"default":"a"})",
      R"({"type":"string","minLength":1,"maxLength":3,"pattern":"^a","x-patternMessage":"m"})",
      R"({"type":"string","format":"uri","examples":["https://a.b"]})",
      R"({"type":"integer","minimum":1,"maximum":3,"multipleOf":1,"default":2})",
      R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1,"default":0.5})",
      R"({"type":"boolean","default":false,"title":"t","description":"d","$comment":"c"})",
      R"({"type":"string","x-secret":true,"x-group":"g","x-advanced":true,"x-restart":true})",
      R"({"type":"string","x-widget":"textarea"})",
      R"({"type":"integer","x-unit":"MiB","enum":[1,2]})",
  };
  for (const char* field : good)
    agree(settings_with(field), true);
  const char* bad[] = {
      R"({})",
      R"(true)",
      R"({"type":"object"})",
      R"({"type":"array"})",
      R"({"type":"null"})",
      R"({"type":["string","null"]})",
      R"({"type":"strng"})",
      R"({"type":"string","minimum":1})",
      R"({"type":"integer","minLength":1})",
      R"({"type":"boolean","format":"uri"})",
      R"({"type":"string","minLen":1})",
      R"({"type":"string","x-secrt":true})",
      R"({"type":"string","x-secret":"yes"})",
      R"({"type":"string","default":1})",
      R"({"type":"integer","default":1.5})",
      R"({"type":"string","enum":[]})",
      R"({"type":"string","enum":["a","a"]})",
      R"({"type":"string","enum":["a",1]})",
      R"({"type":"string","pattern":"("})",
      R"({"type":"string","pattern":"(?=a"})",
      R"({"type":"string","format":"iri"})",
      R"({"type":"string","maxLength":-1})",
      R"({"type":"string","maxLength":1.5})",
      R"({"type":"number","multipleOf":0})",
      R"({"type":"integer","minimum":"1"})",
      R"({"type":"string","const":"a"})",
      R"({"type":"string","required":true})",
      R"({"type":"string","x-widget":"slider"})",
      R"({"type":"string","title":1})",
      R"({"$ref":"#/properties/b"})",
      R"({"oneOf":[{"type":"string"}]})",
  };
  for (const char* field : bad)
    agree(settings_with(field), false);
}

TEST_CASE("The manifests of this tree fit the published schema, and so do their options schemas",
          "[published]") {
  const auto schema = compile(published("plugin-manifest.schema.json"));
  int count = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(SANDFORGE_SOURCE_DIR) / "plugins")) {
    if (entry.path().filename() != "manifest.json") continue;
    ++count;
    CAPTURE(entry.path());
    const auto manifest = parse(read_file(entry.path()));
    CHECK(format_issues(schema->validate(manifest)).empty());
    for (const auto& provider : manifest.find("providers")->as_array()) {
      const auto compiled = compile_schema(*provider.find("optionsSchema"), SchemaProfile::options);
      CHECK(format_issues(compiled.issues).empty());
    }
  }
  CHECK(count >= 1);
}

TEST_CASE("A manifest with mistakes is refused by the published schema", "[published]") {
  const auto schema = compile(published("plugin-manifest.schema.json"));
  CHECK(
      problems(*schema, R"({"manifest":2,"name":"A","version":"","abi":{"major":1},"providrs":[],
                              "env":["1X"],"license":"a\nb"})") ==
      "(root): \"providers\" is missing (allowed: array of from 1 to 256 items)\n"
      "/manifest: 2 is not allowed (allowed: 1)\n"
      "/name: \"A\": a-z, 0-9, '-', '_' and '.', beginning with a letter or digit\n"
      "/version: has 0 characters, at least 1 are allowed\n"
      "/abi: \"minor\" is missing (allowed: integer from 0 to 65535)\n"
      "/providrs: unknown key \"providrs\" (allowed: manifest, name, version, abi, providers, env, "
      "services, homepage, license); did you mean \"providers\"?\n"
      "/env/0: \"1X\": must be the name of an environment variable\n"
      "/license: \"a\\nb\": must be one line\n");
}
