// What crashes, hangs or fools the libraries beneath. Each row ends in a bound, with a typed
// answer.
#include <chrono>
#include <thread>
#include <vector>

#include "helpers.hpp"
#include "sandforge/settings.hpp"

using namespace schema_test;
using sandforge::CompiledSchema;
using sandforge::SchemaProfile;
namespace json = sandforge::json;

namespace {

// Generous: sanitizers on a loaded machine. The libraries alone need hours or crash.
constexpr auto kBound = std::chrono::seconds(60);

class Stopwatch {
 public:
  ~Stopwatch() { CHECK(std::chrono::steady_clock::now() - started_ < kBound); }

 private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

std::string refused(const json::Value& schema) {
  const Stopwatch watch;
  const auto result = compile_schema(schema, SchemaProfile::full);
  CHECK_FALSE(result);
  return result.issues.empty() ? "" : format_issue(result.issues.front());
}

std::string refused_text(std::string_view text) {
  const Stopwatch watch;
  const auto result = compile_schema_text(text, SchemaProfile::full);
  CHECK_FALSE(result);
  return result.issues.empty() ? "" : format_issue(result.issues.front());
}

bool accepts(const CompiledSchema& schema, const json::Value& value) {
  const Stopwatch watch;
  const bool accepted = schema.accepts(value);
  CHECK(schema.validate(value).empty() == accepted);
  return accepted;
}

std::string with_pattern(const std::string& pattern) {
  json::Object schema;
  schema.set("pattern", pattern);
  return json::write(schema);
}

json::Value nested_arrays(int depth) {
  json::Value value;
  for (int i = 0; i < depth; ++i) {
    json::Array outer;
    outer.push_back(std::move(value));
    value = std::move(outer);
  }
  return value;
}

std::string repeat(const std::string& part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i)
    out += part;
  return out;
}

}  // namespace

TEST_CASE("Patterns run in linear time", "[hostile][cases.F04]") {
  const std::string many(50000, 'a');
  CHECK(accepts(*compile(with_pattern("^.*$")), many));
  CHECK(accepts(*compile(with_pattern("^[a-z]*$")), many));
  CHECK(accepts(*compile(with_pattern("^(a+)+$")), many));
  CHECK_FALSE(accepts(*compile(with_pattern("^(a+)+$")), many + "!"));
  CHECK_FALSE(accepts(*compile(with_pattern("a*a*b")), many));
  CHECK_FALSE(accepts(*compile(with_pattern("^(a?){25}a{25}$")), std::string(100, 'a') + "!"));
  CHECK(accepts(*compile(with_pattern("^(a|b)*$")), std::string(1000000, 'a')));
}

TEST_CASE("Patterns that cannot be compiled are refused", "[hostile]") {
  CHECK_THAT(refused_text(with_pattern(repeat("(", 50000) + repeat(")", 50000))),
             Catch::Contains("64 KiB"));
  CHECK(refused_text(with_pattern(repeat("(", 30000) + repeat(")", 30000))) ==
        "/pattern: the regular expression is longer than 8192 bytes");
  CHECK_THAT(refused_text(with_pattern(repeat("(x{1000}){2}", 300))),
             Catch::StartsWith("/pattern: the regular expression "));
}

TEST_CASE("Formats run in linear time", "[hostile]") {
  for (const char* format : {"date", "time", "date-time", "duration", "email", "hostname", "ipv4",
                             "ipv6", "uri", "uuid", "json-pointer", "regex"}) {
    const auto schema = compile(std::string(R"({"format":")") + format + "\"}");
    CAPTURE(format);
    CHECK_FALSE(accepts(*schema, std::string(50000, '9') + "-01-01 \\"));
    CHECK_FALSE(accepts(*schema, repeat("a.", 50000) + "(\\"));
    CHECK(accepts(*schema, 5));
    CHECK(accepts(*schema, nullptr));
  }
}

TEST_CASE("References that consume nothing are refused", "[hostile]") {
  const std::string itself = "refers to itself without looking into the value";
  CHECK(refused_text(R"({"$ref":"#"})") == "/$ref: the schema " + itself);
  CHECK(refused_text(
            R"({"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}},
                         "allOf":[{"$ref":"#/definitions/a"}]})") ==
        "/definitions/b/$ref: the schema " + itself);
  for (const char* schema :
       {R"({"allOf":[{"$ref":"#"}]})", R"({"anyOf":[{"$ref":"#"}]})", R"({"oneOf":[{"$ref":"#"}]})",
        R"({"if":{"$ref":"#"}})", R"({"if":true,"then":{"$ref":"#"}})",
        R"({"dependencies":{"a":{"$ref":"#"}}})", R"({"not":{"$ref":"#"}})"}) {
    CAPTURE(schema);
    CHECK_THAT(refused_text(schema), Catch::Contains(itself));
  }
  CHECK_THAT(refused_text(R"({"$ref":"urn:)" + repeat("a:", 20000) + "\"}"),
             Catch::Contains("is not local"));
}

TEST_CASE("References that consume a value are fine", "[hostile]") {
  const auto tree = compile(
      R"({"type":"object","properties":{"child":{"$ref":"#"}},"additionalProperties":false})");
  CHECK(accepts(*tree, parse(R"({"child":{"child":{}}})")));
  CHECK_FALSE(accepts(*tree, parse(R"({"child":{"child":{"x":1}}})")));
  const auto names = compile(R"({"propertyNames":{"$ref":"#"},"maxLength":2})");
  CHECK(accepts(*names, parse(R"({"ab":1})")));
  CHECK_FALSE(accepts(*names, parse(R"({"abc":1})")));
}

TEST_CASE("Deep schemas and documents are refused", "[hostile]") {
  std::string schema = "true";
  for (int i = 0; i < 10000; ++i)
    schema = R"({"not":)" + schema + "}";
  CHECK_FALSE(refused_text(schema).empty());
  // A value is copied and ended by recursion: without optimisation, and with what a sanitizer lays
  // on the stack, less of them fit.
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
  const std::vector<int> depths{1000, 2000};
#else
  const std::vector<int> depths{5000, 10000, 20000};
#endif
  json::Object constant;
  constant.set("const", nested_arrays(depths[0]));
  CHECK(refused(constant) == "(root): the schema nests deeper than 64 levels");
  CHECK_THAT(refused_text("{\"const\":" + repeat("[", 100000) + repeat("]", 100000) + "}"),
             Catch::Contains("nested too deeply"));

  const auto anything = compile("{}");
  for (const int depth : depths) {
    const auto issues = anything->validate(nested_arrays(depth));
    REQUIRE(issues.size() == 1);
    CHECK(issues[0].message == "nests deeper than 64 levels");
    CHECK_FALSE(anything->accepts(nested_arrays(depth)));
  }
  CHECK(accepts(*anything, nested_arrays(63)));
}

TEST_CASE("Exploding schemas are refused", "[hostile]") {
  for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
    std::string definitions = R"("d0":{"type":"string"})";
    for (int i = 1; i <= 24; ++i) {
      const std::string below = R"({"$ref":"#/definitions/d)" + std::to_string(i - 1) + "\"}";
      definitions +=
          R"(,"d)" + std::to_string(i) + R"(":{")" + keyword + "\":[" + below + "," + below + "]}";
    }
    CHECK_THAT(refused_text("{\"definitions\":{" + definitions +
                            R"(},"allOf":[{"$ref":"#/definitions/d24"}]})"),
               Catch::Contains("expands to more than 10000 checks of one value"));
  }
  std::string chain = R"("d0":{"type":"string"})";
  for (int i = 1; i <= 5000; ++i) {
    chain += R"(,"d)" + std::to_string(i) + R"(":{"allOf":[{"$ref":"#/definitions/d)" +
             std::to_string(i - 1) + "\"}]}";
  }
  CHECK_THAT(refused_text("{\"definitions\":{" + chain + "}}"),
             Catch::Contains("nests more than 32 schemas for one value"));
  std::string links = R"("d0":{"type":"string"})";
  for (int i = 1; i <= 5000; ++i) {
    links += R"(,"d)" + std::to_string(i) + R"(":{"properties":{"x":{"$ref":"#/definitions/d)" +
             std::to_string(i - 1) + "\"}}}";
  }
  CHECK_THAT(
      refused_text("{\"definitions\":{" + links + R"(},"items":{"$ref":"#/definitions/d5000"}})"),
      Catch::Contains("nests more than 128 deep through references"));
}

TEST_CASE("A schema that doubles the work at each level of the document is stopped", "[hostile]") {
  for (const char* keyword : {"allOf", "anyOf"}) {
    const std::string part = R"({"properties":{"x":{"$ref":"#"}},"items":{"$ref":"#"}})";
    const auto schema = compile(std::string(R"({"type":["object","array"],")") + keyword + "\":[" +
                                part + "," + part + "]}");
    json::Value deep = "bottom";
    for (int i = 0; i < 60; ++i) {
      json::Object outer;
      outer.set("x", std::move(deep));
      deep = std::move(outer);
    }
    const Stopwatch watch;
    const bool accepted = schema->accepts(deep);
    const auto issues = schema->validate(deep);
    CHECK_FALSE(accepted);
    REQUIRE_FALSE(issues.empty());
  }
}

TEST_CASE("Large arrays and objects are checked in good time", "[hostile]") {
  json::Array items;
  for (int i = 0; i < 50000; ++i)
    items.emplace_back(i);
  const auto unique = compile(R"({"uniqueItems":true})");
  CHECK(accepts(*unique, items));
  items.emplace_back(7.0);
  CHECK_FALSE(accepts(*unique, items));

  json::Object properties;
  std::vector<json::Member> members;
  for (int i = 0; i < 10000; ++i) {
    members.emplace_back("k" + std::to_string(i), json::Value(json::Object()));
  }
  json::Object schema;
  schema.set("properties", json::Object::adopt(members));
  for (json::Member& member : members)
    member.second = 1;
  const json::Value document = json::Object::adopt(std::move(members));
  const Stopwatch watch;
  const auto compiled = compile_schema(schema, SchemaProfile::full);
  REQUIRE(compiled);
  CHECK(accepts(*compiled.schema, document));
}

TEST_CASE("Numbers keep their exact value", "[hostile]") {
  const json::Value above(18446744073709551615ULL);
  CHECK_FALSE(accepts(*compile(R"({"type":"integer","maximum":10})"), above));
  CHECK_FALSE(accepts(*compile(R"({"const":-1})"), above));
  CHECK_FALSE(accepts(*compile(R"({"enum":[-1]})"), above));
  CHECK_FALSE(accepts(*compile(R"({"const":9007199254740993})"), json::Value(9007199254740992LL)));
  CHECK_FALSE(accepts(*compile(R"({"enum":[9007199254740993]})"), json::Value(9007199254740992.0)));
  CHECK_FALSE(
      accepts(*compile(R"({"minimum":9007199254740993})"), json::Value(9007199254740992LL)));
  CHECK_FALSE(
      accepts(*compile(R"({"minimum":9007199254740993})"), json::Value(9007199254740992.0)));
  CHECK_FALSE(
      accepts(*compile(R"({"maximum":9007199254740992})"), json::Value(9007199254740993LL)));
  CHECK(accepts(*compile(R"({"const":2})"), json::Value(2.0)));
  CHECK(accepts(*compile(R"({"exclusiveMaximum":9223372036854775807})"),
                json::Value(9223372036854775806LL)));
}

TEST_CASE("multipleOf is exact", "[hostile]") {
  const auto multiple = [](const char* divisor, const json::Value& value) {
    return accepts(*compile(std::string(R"({"multipleOf":)") + divisor + "}"), value);
  };
  CHECK_FALSE(multiple("2", 4.5));
  CHECK(multiple("0.01", 4.02));
  CHECK(multiple("0.01", 1234567.89));
  CHECK_FALSE(multiple("0.01", 4.021));
  CHECK(multiple("0.1", 0.3));
  CHECK(multiple("0.0001", 0.0075));
  CHECK_FALSE(multiple("0.0001", 0.00751));
  CHECK(multiple("2.5", 5));
  CHECK(multiple("2.5", 1e300));
  CHECK_FALSE(multiple("0.123456789", 1e308));
  CHECK_FALSE(multiple("1e308", 1e-308));
  CHECK(multiple("1e-300", 1e300));
  CHECK(multiple("3", json::Value(std::numeric_limits<std::int64_t>::min() + 2)));
  CHECK_FALSE(multiple("3", json::Value(std::numeric_limits<std::int64_t>::min())));
  CHECK(multiple("7", 0));
  CHECK(multiple("7", -14));
}

TEST_CASE("Integers are values, not spellings", "[hostile]") {
  const auto integer = compile(R"({"type":"integer"})");
  CHECK(accepts(*integer, parse("1.0")));
  CHECK(accepts(*integer, parse("1e3")));
  CHECK(accepts(*integer, parse("1e20")));
  CHECK_FALSE(accepts(*integer, parse("1.5")));
  CHECK_FALSE(accepts(*integer, "1"));
}

TEST_CASE("Strings are counted in characters, with NUL inside", "[hostile]") {
  using std::string_literals::operator""s;
  CHECK_FALSE(accepts(*compile(R"({"maxLength":1})"), "a\0bcdef"s));
  CHECK(accepts(*compile(R"({"pattern":"^.{3}$"})"), "\xC3\xA4\xC3\xB6\xC3\xBC"));
  CHECK(accepts(*compile(R"({"maxLength":3})"), "\xC3\xA4\xC3\xB6\xC3\xBC"));
  CHECK_FALSE(accepts(*compile(R"({"required":["a\u0000b"]})"), parse(R"({"a":1})")));
  CHECK(accepts(*compile(R"({"required":["a\u0000b"]})"), parse(R"({"a\u0000b":1})")));
  CHECK_FALSE(accepts(*compile(R"({"additionalProperties":false,"properties":{"a":{}}})"),
                      parse(R"({"a\u0000b":1})")));
  CHECK(refused_text(R"({"properties":{"a\u0000b":{}}})") ==
        "/properties/a\\x00b: a name must not contain NUL");
  CHECK_FALSE(accepts(*compile(R"({"const":"a"})"), "a\0b"s));
}

TEST_CASE("Dates are real days", "[hostile]") {
  const auto date = compile(R"({"format":"date"})");
  CHECK_FALSE(accepts(*date, "2023-02-29"));
  CHECK(accepts(*date, "2024-02-29"));
  CHECK_FALSE(accepts(*date, "1900-02-29"));
  const auto nullable = compile(R"({"type":["string","null"],"format":"date-time"})");
  CHECK(accepts(*nullable, nullptr));
  CHECK_FALSE(accepts(*nullable, "2024-01-01T10:00:60Z"));
}

TEST_CASE("A refusal always has a reason", "[hostile]") {
  for (const char* schema :
       {"false", R"({"propertyNames":{"maxLength":1}})", R"({"properties":{"ab":false}})",
        R"({"items":false})", R"({"anyOf":[false,false]})"}) {
    const auto compiled = compile(schema);
    const json::Value document = std::string_view(schema).find("items") != std::string_view::npos
                                     ? parse("[1]")
                                     : parse(R"({"ab":1})");
    CAPTURE(schema);
    CHECK_FALSE(compiled->accepts(document));
    CHECK_FALSE(compiled->validate(document).empty());
  }
}

TEST_CASE("One schema is used by many threads", "[hostile][threads]") {
  const auto schema = compile(R"({"type":"object","additionalProperties":false,"properties":{
      "a":{"type":"string","pattern":"^[a-z]+$"},"b":{"type":"string","format":"date"},
      "c":{"type":"array","uniqueItems":true,"items":{"multipleOf":0.01}}}})");
  const json::Value good = parse(R"({"a":"x","b":"2024-01-01","c":[0.01,4.02]})");
  const json::Value bad = parse(R"({"a":"X","b":"2024-13-01","c":[0.011,1,1]})");
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        if (!schema->accepts(good) || schema->validate(bad).size() != 4) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("Defaults that ask for defaults end", "[hostile]") {
  const auto refusal = [](const std::string& text) {
    const Stopwatch watch;
    const auto result = compile_schema_text(text, SchemaProfile::options);
    return result.issues.empty() ? "" : format_issue(result.issues.front());
  };
  const char* endless = "(root): the defaults fill in more and more defaults without end";
  CHECK(refusal(R"({"type":"object","additionalProperties":false,
        "properties":{"a":{"$ref":"#/definitions/n"}},
        "definitions":{"n":{"type":"object","default":{},"additionalProperties":false,
          "properties":{"n":{"$ref":"#/definitions/n"}}}}})") == endless);

  // No recursion, but ten to the power of nine values.
  std::string wide =
      R"({"type":"object","additionalProperties":false,"properties":{"a":{"$ref":"#/definitions/d9"}},"definitions":{"d0":{"type":"integer","default":1})";
  for (int level = 1; level <= 9; ++level) {
    wide += ",\"d" + std::to_string(level) +
            R"(":{"type":"object","default":{},"additionalProperties":false,"properties":{)";
    for (int member = 0; member < 10; ++member) {
      wide += (member == 0 ? "\"m" : ",\"m") + std::to_string(member) +
              R"(":{"$ref":"#/definitions/d)" + std::to_string(level - 1) + "\"}";
    }
    wide += "}}";
  }
  CHECK(refusal(wide + "}}") == endless);

  // Asked for by the document only.
  const auto schema = compile(R"({"additionalProperties":{"$ref":"#/definitions/n"},
      "definitions":{"n":{"default":{},"properties":{"n":{"$ref":"#/definitions/n"}}}}})");
  json::Object document;
  document.set("x", json::Object());
  json::Value value = document;
  CHECK_FALSE(schema->apply_defaults(value));
  CHECK_FALSE(effective_settings(*schema, document).issues.empty());
}
