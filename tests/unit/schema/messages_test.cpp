// What people read: whole texts.
#include "helpers.hpp"
#include "sandforge/settings.hpp"

using namespace schema_test;
using sandforge::SchemaProfile;

namespace {

const char* const kProvider = R"({
  "type": "object", "additionalProperties": false,
  "properties": {
    "cpuCount": {"type": "integer", "minimum": 1, "maximum": 64, "default": 2},
    "memoryMb": {"type": "integer", "minimum": 128, "multipleOf": 64},
    "ratio": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "network": {"type": "string", "enum": ["none", "bridge", "host"]},
    "image": {"type": "string", "minLength": 3, "maxLength": 10, "pattern": "^[a-z:]+$"},
    "name": {"type": "string", "pattern": "^[a-z]+$", "x-patternMessage": "lower-case letters only"},
    "address": {"type": "string", "format": "ipv4"},
    "debug": {"type": "boolean"},
    "token": {"type": "string", "x-secret": true, "minLength": 8, "pattern": "^[a-z]+$"}
  }})";

std::string in_settings(std::string_view document) {
  return problems(*compile(kProvider, SchemaProfile::settings), document);
}

}  // namespace

TEST_CASE("Messages about one value", "[messages]") {
  CHECK(in_settings(R"({})") == "ok");
  CHECK(in_settings(
            R"({"cpuCount":4,"memoryMb":1024,"ratio":0.5,"network":"none","debug":true})") == "ok");
  CHECK(in_settings(R"([])") == "(root): expected object, got array\n");
  CHECK(in_settings(R"({"cpuCount":0})") ==
        "/cpuCount: 0 is less than the minimum 1 (allowed: integer from 1 to 64)\n");
  CHECK(in_settings(R"({"cpuCount":65})") ==
        "/cpuCount: 65 is greater than the maximum 64 (allowed: integer from 1 to 64)\n");
  CHECK(in_settings(R"({"cpuCount":1.5})") ==
        "/cpuCount: expected integer, got number (allowed: integer from 1 to 64)\n");
  CHECK(in_settings(R"({"cpuCount":null})") ==
        "/cpuCount: expected integer, got null (allowed: integer from 1 to 64)\n");
  CHECK(in_settings(R"({"memoryMb":1000})") == "/memoryMb: 1000 is not a multiple of 64\n");
  CHECK(in_settings(R"({"ratio":0})") ==
        "/ratio: 0 is not greater than 0 (allowed: number greater than 0, less than 1)\n");
  CHECK(in_settings(R"({"ratio":1})") ==
        "/ratio: 1 is not less than 1 (allowed: number greater than 0, less than 1)\n");
  CHECK(in_settings(R"({"network":"brigde"})") ==
        "/network: \"brigde\" is not allowed (allowed: none, bridge, host); did you mean "
        "\"bridge\"?\n");
  CHECK(in_settings(R"({"image":"a"})") == "/image: has 1 characters, at least 3 are allowed\n");
  CHECK(in_settings(R"({"image":"ubuntuubuntu"})") ==
        "/image: has 12 characters, at most 10 are allowed\n");
  CHECK(in_settings(R"({"image":"A:1"})") ==
        "/image: \"A:1\" does not match the pattern \"^[a-z:]+$\"\n");
  CHECK(in_settings(R"({"name":"Ab"})") == "/name: \"Ab\": lower-case letters only\n");
  CHECK(in_settings(R"({"address":"1.2.3"})") == "/address: \"1.2.3\" is not an IPv4 address\n");
}

TEST_CASE("Hints for the slips that YAML invites", "[messages]") {
  CHECK(in_settings(R"({"debug":"yes"})") == "/debug: expected boolean, got string; write true\n");
  CHECK(in_settings(R"({"debug":"on"})") == "/debug: expected boolean, got string; write true\n");
  CHECK(in_settings(R"({"debug":"no"})") == "/debug: expected boolean, got string; write false\n");
  CHECK(in_settings(R"({"debug":"true"})") ==
        "/debug: expected boolean, got string; remove the quotes\n");
  CHECK(in_settings(R"({"image":8080})") ==
        "/image: expected string, got integer (allowed: string of from 3 to 10 characters); put it "
        "in quotes: \"8080\"\n");
  CHECK(in_settings(R"({"cpuCount":"4"})") ==
        "/cpuCount: expected integer, got string (allowed: integer from 1 to 64); remove the "
        "quotes\n");
}

TEST_CASE("Unknown keys come with a suggestion", "[messages][cases.F01]") {
  CHECK(in_settings(R"({"cpuCuont":4})") ==
        "/cpuCuont: unknown key \"cpuCuont\" (allowed: cpuCount, memoryMb, ratio, network, image, "
        "name, address, debug, token); did you mean \"cpuCount\"?\n");
  CHECK(in_settings(R"({"zzz":4})") ==
        "/zzz: unknown key \"zzz\" (allowed: cpuCount, memoryMb, ratio, network, image, name, "
        "address, debug, token)\n");
  const auto issues = compile(kProvider, SchemaProfile::settings)->validate(parse(R"({"a/b~":1})"));
  REQUIRE(issues.size() == 1);
  CHECK(issues[0].pointer == "/a~1b~0");
  CHECK(issues[0].keyword == "additionalProperties");
}

TEST_CASE("Every mistake is reported, in the order of the document", "[messages][cases.F02]") {
  CHECK(in_settings(R"({"debug":1,"cpuCount":"x","memoryMb":1,"extra":1})") ==
        "/debug: expected boolean, got integer\n"
        "/cpuCount: expected integer, got string (allowed: integer from 1 to 64)\n"
        "/memoryMb: 1 is less than the minimum 128 (allowed: integer at least 128, a multiple of "
        "64)\n"
        "/memoryMb: 1 is not a multiple of 64\n"
        "/extra: unknown key \"extra\" (allowed: cpuCount, memoryMb, ratio, network, image, name, "
        "address, debug, token)\n");
}

TEST_CASE("Secrets are never shown", "[messages]") {
  CHECK(in_settings(R"({"token":"HUNTER2"})") ==
        "/token: needs at least 8 characters\n"
        "/token: the value does not match the pattern \"^[a-z]+$\"\n");
  CHECK(
      in_settings(R"({"token":12345678})") ==
      "/token: expected string, got integer (allowed: string of at least 8 characters); put it in "
      "quotes\n");
  for (const char* mark : {R"("x-secret":true)", R"("writeOnly":true)", R"("format":"password")"}) {
    const auto schema = compile(std::string(R"({"properties":{"a":{"enum":["hidden"],)") + mark +
                                R"(},"b":{"allOf":[{"maxLength":3},{"$ref":"#/properties/a"}]},
          "c":{"x-secret":true,"properties":{"d":{"maxLength":2,"pattern":"^x"}}}}})");
    const std::string text =
        problems(*schema, R"({"a":"HUNTER2","b":"HUNTER2","c":{"d":"HUNTER2"}})");
    CAPTURE(text);
    CHECK(text.find("HUNTER2") == std::string::npos);
    CHECK(text.find("/a: the value is not allowed") != std::string::npos);
    CHECK(schema->is_secret("/a"));
    CHECK(schema->is_secret("/b"));
    CHECK(schema->is_secret("/c/d"));
    CHECK_FALSE(schema->is_secret("/other"));
    CHECK_FALSE(schema->is_secret(""));
  }
}

TEST_CASE("A value is secret wherever the schema says so", "[messages]") {
  const auto is_secret = [](const char* schema, const char* pointer) {
    return compile(schema)->is_secret(pointer);
  };
  const char* const places[] = {
      R"({"if":{"required":["b"]},"then":{"properties":{"a":{"x-secret":true}}}})",
      R"({"if":{"required":["b"]},"else":{"properties":{"a":{"x-secret":true}}}})",
      R"({"dependencies":{"b":{"properties":{"a":{"x-secret":true}}}}})",
      R"({"anyOf":[{"properties":{"a":{}}},{"properties":{"a":{"x-secret":true}}}]})",
      R"({"properties":{"a":{}},"allOf":[{"properties":{"a":{"x-secret":true}}}]})",
      R"({"allOf":[{"additionalProperties":{"x-secret":true}}]})",
  };
  for (const char* schema : places) {
    CAPTURE(schema);
    CHECK(is_secret(schema, "/a"));
    CHECK_FALSE(is_secret(schema, ""));
  }
  const char* tuple = R"({"properties":{"l":{"items":[{},{"x-secret":true}]}}})";
  CHECK(is_secret(tuple, "/l/1"));
  CHECK_FALSE(is_secret(tuple, "/l"));
  const char* loop = R"({"properties":{"n":{"$ref":"#"},"s":{"x-secret":true}}})";
  CHECK(is_secret(loop, "/n/n/n/s"));
  CHECK_FALSE(is_secret(loop, "/n/n/n/t"));
}

TEST_CASE("A message cannot steer the terminal that shows it", "[messages]") {
  CHECK(
      problems(*compile(R"({"additionalProperties":false})"), R"({"a\u001b[2J\u009bK\u202e":1})") ==
      "/a\\x1b[2J\\u{9b}K\\u{202e}: unknown key \"a\\u001b[2J\\u{9b}K\\u{202e}\"\n");
}

TEST_CASE("Nested documents have pointers", "[messages]") {
  const auto schema = compile(R"({
    "type":"object", "additionalProperties":false, "required":["endpoint","image"],
    "properties":{
      "endpoint":{"type":"string","format":"uri"}, "image":{"type":"string"},
      "mounts":{"type":"array","maxItems":2,"uniqueItems":true,"items":{"$ref":"#/definitions/mount"}},
      "env":{"type":"object","additionalProperties":{"type":"string"},"minProperties":1,
             "maxProperties":2,"propertyNames":{"pattern":"^[A-Z]+$","x-patternMessage":"capitals only"}}
    },
    "dependencies":{"mounts":["env"]},
    "definitions":{"mount":{"type":"object","additionalProperties":false,"required":["source"],
      "properties":{"source":{"type":"string"},"mode":{"type":"string","enum":["ro","rw"]}}}}})");
  CHECK(problems(*schema,
                 R"({"endpoint":"x","mounts":[{"mode":"rx"},{"source":"a"},{"source":"a"}]})") ==
        "(root): \"image\" is missing (allowed: string)\n"
        "/endpoint: \"x\" is not a URI with a scheme, such as https://example.com/path\n"
        "/mounts: has 3 items, at most 2 are allowed\n"
        "/mounts: holds a value twice\n"
        "/mounts/0: \"source\" is missing (allowed: string)\n"
        "/mounts/0/mode: \"rx\" is not allowed (allowed: ro, rw); did you mean \"ro\"?\n"
        "(root): \"env\" is missing, \"mounts\" needs it\n");
  CHECK(problems(*schema, R"({"endpoint":"a:b","image":"i","env":{"path":"x"}})") ==
        "/env/path: this name is not allowed: \"path\": capitals only\n");
  CHECK(problems(*schema, R"({"endpoint":"a:b","image":"i","env":{}})") ==
        "/env: has 0 members, at least 1 are allowed\n");
  CHECK(problems(*schema, R"({"endpoint":"a:b","image":"i","env":{"A":1,"B":"","C":""}})") ==
        "/env: has 3 members, at most 2 are allowed\n"
        "/env/A: expected string, got integer; put it in quotes: \"1\"\n");
}

TEST_CASE("Of alternatives, the one that was meant is explained", "[messages]") {
  const auto tagged = compile(R"({
    "type":"object","properties":{"auth":{"type":"object","oneOf":[
      {"properties":{"kind":{"const":"none"}},"required":["kind"],"additionalProperties":false},
      {"properties":{"kind":{"const":"token"},"token":{"type":"string"}},
       "required":["kind","token"],"additionalProperties":false}]}}})");
  CHECK(problems(*tagged, R"({"auth":{"kind":"none"}})") == "ok");
  CHECK(problems(*tagged, R"({"auth":{"kind":"token"}})") ==
        "/auth: \"token\" is missing (allowed: string)\n");
  CHECK(problems(*tagged, R"({"auth":{"kind":"tokn"}})") ==
        "/auth/kind: \"tokn\" is not allowed (allowed: none, token); did you mean \"token\"?\n");
  CHECK(problems(*tagged, R"({"auth":{}})") ==
        "/auth: \"kind\" is missing (allowed: none, token)\n");

  const auto labelled =
      compile(R"({"oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]})");
  CHECK(problems(*labelled, R"("c")") == "(root): \"c\" is not allowed (allowed: a, b)\n");

  const auto typed = compile(
      R"({"anyOf":[{"type":"object","required":["x"]},{"type":"array","items":{"type":"string"}}]})");
  CHECK(problems(*typed, R"([1])") ==
        "/0: expected string, got integer; put it in quotes: \"1\"\n");
  CHECK(problems(*typed, R"({})") == "(root): \"x\" is missing\n");
  CHECK(problems(*typed, R"(5)") ==
        "(root): fits none of the alternatives, got integer (allowed: object or array)\n");

  const auto both = compile(R"({"oneOf":[{"minimum":1},{"maximum":5}]})");
  CHECK(problems(*both, "3") == "(root): fits 2 alternatives, must fit exactly one\n");

  const auto branch = compile(R"({"if":{"properties":{"a":{"const":1}},"required":["a"]},
                                  "then":{"required":["b"]},"else":{"required":["c"]}})");
  CHECK(problems(*branch, R"({"a":1})") == "(root): \"b\" is missing\n");
  CHECK(problems(*branch, R"({"a":2})") == "(root): \"c\" is missing\n");
  CHECK(problems(*compile(R"({"not":{"type":"string"}})"), R"("x")") ==
        "(root): this value is excluded\n");
  CHECK(problems(*compile(R"({"contains":{"type":"string"}})"), "[1]") ==
        "(root): no item is as it must be (allowed: string)\n");
  CHECK(problems(*compile("false"), "1") == "(root): nothing is allowed here\n");
  CHECK(problems(*compile(R"({"const":1})"), "2") == "(root): 2 is not allowed (allowed: 1)\n");
}

TEST_CASE("At most 100 mistakes are reported", "[messages]") {
  std::string document = "{";
  for (int i = 0; i < 500; ++i) {
    document += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":1";
  }
  document += "}";
  const auto issues = compile(kProvider, SchemaProfile::settings)->validate(parse(document));
  CHECK(issues.size() == 100);
}

TEST_CASE("Long and odd values are shortened and escaped", "[messages]") {
  const auto schema = compile(R"({"maxLength":3,"pattern":"^a"})");
  CHECK(problems(*schema, R"("\u001b[31m")") ==
        "(root): has 5 characters, at most 3 are allowed\n"
        "(root): \"\\u001b[31m\" does not match the pattern \"^a\"\n");
  const auto issues = schema->validate(sandforge::json::Value(std::string(1000, 'x')));
  REQUIRE(issues.size() == 2);
  CHECK(issues[1].message.size() < 130);
}
