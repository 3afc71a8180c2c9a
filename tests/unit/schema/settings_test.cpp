#include "sandforge/settings.hpp"

#include "helpers.hpp"

using namespace schema_test;
using sandforge::effective_settings;
using sandforge::SchemaProfile;
using sandforge::update_settings;

namespace {

sandforge::CompiledSchemaPtr provider() {
  return compile(R"({
    "type":"object","additionalProperties":false,
    "properties":{
      "cpuCount":{"type":"integer","minimum":1,"default":2},
      "memoryMb":{"type":"integer","minimum":128,"default":1024},
      "region":{"type":"string"},
      "token":{"type":"string","x-secret":true}}})",
                 SchemaProfile::settings);
}

std::string update(std::string_view stored, std::string_view patch) {
  const auto result = update_settings(*provider(), parse(stored), parse(patch));
  std::string out = result.accepted ? "stored " : "refused ";
  out += sandforge::json::write(result.stored);
  for (const std::string& key : result.dropped)
    out += " dropped " + key;
  for (const auto& issue : result.issues)
    out += " " + issue.pointer + " " + issue.keyword;
  return out;
}

std::string origins(const sandforge::EffectiveSettings& settings) {
  std::string out;
  for (const auto& [key, origin] : settings.origins) {
    out += key + "=" + to_string(origin) + " ";
  }
  return out;
}

}  // namespace

TEST_CASE("Effective settings are the stored ones and the defaults, with origins", "[settings]") {
  auto result = effective_settings(*provider(), parse(R"({"memoryMb":2048})"));
  CHECK(sandforge::json::write(result.document) == R"({"memoryMb":2048,"cpuCount":2})");
  CHECK(origins(result) == "memoryMb=stored cpuCount=schema ");
  CHECK(result.issues.empty());

  result = effective_settings(*provider(), nullptr);
  CHECK(sandforge::json::write(result.document) == R"({"cpuCount":2,"memoryMb":1024})");

  result = effective_settings(*provider(), parse("{}"), parse(R"({"cpuCount":2,"region":"eu"})"));
  CHECK(origins(result) == "cpuCount=option memoryMb=schema ");

  result = effective_settings(*provider(), parse(R"({"cpuCount":2.0})"));
  CHECK(sandforge::json::write(result.document) == R"({"cpuCount":2,"memoryMb":1024})");
  CHECK(result.document.find("cpuCount")->is_integer());

  result = effective_settings(*provider(), parse(R"({"cpuCount":0,"old":1})"));
  CHECK(result.issues.size() == 2);
  result = effective_settings(*provider(), parse("[]"));
  CHECK(result.issues.size() == 1);
}

TEST_CASE("What is described, validated and received is the same", "[settings]") {
  const auto schema = provider();
  const auto received = effective_settings(*schema, nullptr).document;
  for (const auto& [name, field] : schema->document().find("properties")->as_object()) {
    const auto* described = field.find("default");
    CAPTURE(name);
    if (described == nullptr) {
      CHECK(received.find(name) == nullptr);
      continue;
    }
    CHECK(*received.find(name) == *described);
    sandforge::json::Object one;
    one.set(name, *described);
    CHECK(schema->accepts(one));
  }
}

TEST_CASE("Updates are merge patches, validated as a whole", "[settings]") {
  CHECK(update("null", R"({"cpuCount":4})") == R"(stored {"cpuCount":4})");
  CHECK(update(R"({"cpuCount":4})", R"({"memoryMb":256})") ==
        R"(stored {"cpuCount":4,"memoryMb":256})");
  CHECK(update(R"({"cpuCount":4})", R"({"cpuCount":null})") == "stored null");
  CHECK(update(R"({"cpuCount":4,"region":"eu"})", R"({"cpuCount":null})") ==
        R"(stored {"region":"eu"})");
  CHECK(update("null", "{}") == "stored null");
  CHECK(update(R"({"cpuCount":4})", R"({"cpuCount":0})") ==
        R"(refused {"cpuCount":4} /cpuCount minimum)");
  CHECK(update("null", R"({"cpuCount":2})") == R"(stored {"cpuCount":2})");
  CHECK(update(R"({"cpuCount":4})", "[]") == R"(refused {"cpuCount":4}  type)");
  CHECK(update(R"({"cpuCount":4})", "null") == R"(refused {"cpuCount":4}  type)");
}

TEST_CASE("Keys that the schema no longer declares are dropped when they are in the way",
          "[settings]") {
  CHECK(update(R"({"old":1,"cpuCount":4})", R"({"cpuCount":8})") ==
        R"(stored {"cpuCount":8} dropped old)");
  CHECK(update(R"({"old":1,"older":2})", R"({"old":null})") == "stored null dropped older");
  SECTION("but never keys of the update itself") {
    CHECK(update(R"({"old":1})", R"({"new":1})") ==
          R"(refused {"old":1} /new additionalProperties)");
    CHECK(update("null", R"({"cpuCuont":1})") == R"(refused null /cpuCuont additionalProperties)");
    CHECK(update(R"({"old":1})", R"({"old":2})") ==
          R"(refused {"old":1} /old additionalProperties)");
  }
  SECTION("and not when something else is wrong") {
    CHECK(update(R"({"old":1})", R"({"cpuCount":0})") == R"(refused {"old":1} /cpuCount minimum)");
  }
}

TEST_CASE("Defaults are filled in where they are certain", "[settings]") {
  const auto fill = [](const char* schema, const char* document) {
    auto value = parse(document);
    CHECK(compile(schema)->apply_defaults(value));
    return sandforge::json::write(value);
  };
  const char* nested = R"({"properties":{"a":{"properties":{"b":{"default":1}}}}})";
  CHECK(fill(nested, "{}") == "{}");
  CHECK(fill(nested, R"({"a":{}})") == R"({"a":{"b":1}})");
  CHECK(fill(nested, R"({"a":null})") == R"({"a":null})");
  CHECK(fill(R"({"properties":{"a":{"default":{},"properties":{"b":{"default":1}}}}})", "{}") ==
        R"({"a":{"b":1}})");
  CHECK(fill(R"({"properties":{"a":{"default":1}}})", R"({"a":null})") == R"({"a":null})");
  CHECK(fill(R"({"items":{"properties":{"a":{"default":1}}}})", "[{},{}]") ==
        R"([{"a":1},{"a":1}])");
  CHECK(fill(R"({"additionalProperties":{"properties":{"a":{"default":1}}}})", R"({"x":{}})") ==
        R"({"x":{"a":1}})");
  CHECK(fill(R"({"definitions":{"d":{"default":7}},"properties":{"a":{"$ref":"#/definitions/d"}}})",
             "{}") == R"({"a":7})");
  CHECK(
      fill(
          R"({"properties":{"s":{"x-secret":true,"default":"x"},"w":{"writeOnly":true,"default":1}}})",
          "{}") == "{}");
  for (const char* branch : {"anyOf", "oneOf"}) {
    const std::string schema =
        std::string(R"({")") + branch + R"(":[{"properties":{"a":{"default":1}}}]})";
    CHECK(fill(schema.c_str(), "{}") == "{}");
  }
  CHECK(fill(R"({"not":{"properties":{"a":{"default":1}}}})", "{}") == "{}");
  CHECK(fill(R"({"if":{"properties":{"a":{"default":1}}}})", "{}") == "{}");
  CHECK(fill(R"({"allOf":[{"properties":{"a":{"default":1}}}]})", "{}") == R"({"a":1})");
  CHECK(fill(R"({"oneOf":[{"properties":{"k":{"const":"x"},"a":{"default":1}}},
                          {"properties":{"k":{"const":"y"},"a":{"default":2}}}]})",
             R"({"k":"y"})") == R"({"k":"y","a":2})");
}

TEST_CASE("The cache returns one schema for one text, and is bounded", "[settings]") {
  sandforge::SchemaCache cache(2);
  const auto schema = [](int n) {
    return parse(settings_with(R"({"type":"integer","default":)" + std::to_string(n) + "}"));
  };
  const auto first = cache.get(schema(1), SchemaProfile::settings).schema;
  CHECK(cache.get(schema(1), SchemaProfile::settings).schema == first);
  CHECK(cache.get(schema(1), SchemaProfile::full).schema != first);
  CHECK(cache.size() == 2);
  CHECK(cache.get(schema(1), SchemaProfile::settings).schema == first);
  cache.get(schema(2), SchemaProfile::settings);
  CHECK(cache.size() == 2);
  CHECK(cache.get(schema(1), SchemaProfile::settings).schema == first);
  CHECK_FALSE(cache.get(parse("{}"), SchemaProfile::settings));
  CHECK(cache.size() == 2);
}
