// The gate for plugin schemas: whole messages.
#include "sandforge/schema.hpp"

#include "helpers.hpp"

using namespace schema_test;
using sandforge::SchemaProfile;

namespace {

struct Row {
  const char* property;
  const char* message;
};

void check_settings(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.property);
    CHECK(lint(settings_with(row.property), SchemaProfile::settings) == row.message);
  }
}

std::string settings(const char* text) {
  return lint(text, SchemaProfile::settings);
}
std::string options(const char* text) {
  return lint(text, SchemaProfile::options);
}

}  // namespace

TEST_CASE("Settings schemas of the bundled kind pass", "[lint]") {
  CHECK(settings(R"({"type":"object","properties":{},"additionalProperties":false})") == "ok");
  CHECK(settings(R"({"type":"object","additionalProperties":false})") == "ok");
  CHECK(settings(R"({
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "E2B", "description": "Settings", "type": "object", "x-order": ["cpuCount"],
    "properties": {
      "cpuCount": {"type": "integer", "title": "CPUs", "minimum": 1, "maximum": 64, "default": 2,
                   "x-unit": "cores", "x-group": "size", "x-restart": true, "x-advanced": false},
      "ratio": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.05},
      "region": {"type": "string", "enum": ["us", "eu"], "default": "us",
                 "x-enumTitles": ["America", "Europe"], "x-widget": "radio"},
      "image": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-z0-9./:-]+$",
                "x-patternMessage": "an image name", "examples": ["node:22"]},
      "endpoint": {"type": "string", "format": "uri"},
      "token": {"type": "string", "x-secret": true},
      "debug": {"type": "boolean", "default": false}
    },
    "additionalProperties": false})") == "ok");
}

TEST_CASE("The root of a settings schema is a closed object", "[lint]") {
  CHECK(settings(R"([])") == "(root): a schema must be an object, not array\n");
  CHECK(settings(R"(true)") == "(root): a schema must be an object, not boolean\n");
  CHECK(settings(R"({})") == "(root): \"type\" is missing; every field names its type\n");
  CHECK(settings(R"({"type":"object"})") ==
        "(root): \"additionalProperties\" is missing; add \"additionalProperties\": false\n");
  CHECK(settings(R"({"type":"object","additionalProperties":true})") ==
        "/additionalProperties: must be false; unknown keys would not be found otherwise\n");
  CHECK(settings(R"({"type":"object","additionalProperties":"false"})") ==
        "/additionalProperties: must be false, not the string \"false\"\n");
  CHECK(settings(R"({"type":"object","additionalProperties":{"type":"string"}})") ==
        "/additionalProperties: must be false; unknown keys would not be found otherwise\n");
  CHECK(settings(R"({"type":"string","additionalProperties":false})") ==
        "/type: the type of the root must be \"object\"\n"
        "/additionalProperties: \"additionalProperties\" does not apply to the type string\n");
  CHECK(settings(R"({"type":"object","additionalProperties":false,"required":["a"],
                     "properties":{"a":{"type":"string"}}})") ==
        "/required: \"required\" is not allowed in a settings schema; every project starts with "
        "empty settings: give a default\n");
  CHECK(settings(R"({"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
                     "additionalProperties":false})") ==
        "/$schema: only draft-07 is supported, not "
        "\"https://json-schema.org/draft/2020-12/schema\"; leave it out or use "
        "\"http://json-schema.org/draft-07/schema#\"\n");
  CHECK(
      settings(R"({"$id":"https://example.com/x","type":"object","additionalProperties":false})") ==
      "/$id: \"$id\" is not allowed in a settings schema; identifiers are not supported: "
      "reference definitions by #/definitions/NAME\n");
}

TEST_CASE("A setting is one primitive", "[lint]") {
  const std::string primitive = "a setting must be a string, integer, number or boolean, not ";
  check_settings({
      {R"({})", "/properties/a: \"type\" is missing; every field names its type\n"},
      {R"({"enum":["x"]})", "/properties/a: \"type\" is missing; every field names its type\n"},
      {R"({"type":"strng"})",
       "/properties/a/type: unknown type \"strng\"; did you mean "
       "\"string\"?\n"},
      {R"({"type":"any"})", "/properties/a/type: unknown type \"any\"\n"},
      {R"({"type":["string","null"]})",
       "/properties/a/type: a setting must be a string, integer, number or boolean, not string or "
       "null\n/properties/a/type: must be one type: settings are never null\n"},
      {R"({"type":5})", "/properties/a/type: must be a string, not integer\n"},
  });
  for (const char* type : {"object", "array", "null"}) {
    const std::string schema = settings_with(std::string(R"({"type":")") + type + "\"}");
    CHECK(lint(schema, SchemaProfile::settings) ==
          "/properties/a/type: " + primitive + type + "\n");
  }
}

TEST_CASE("Unknown, foreign and misplaced keywords are errors", "[lint][cases.F04]") {
  check_settings({
      {R"({"type":"integer","minimun":1})",
       "/properties/a/minimun: unknown keyword \"minimun\"; did you mean \"minimum\"?\n"},
      {R"({"type":"string","x-secrt":true})",
       "/properties/a/x-secrt: unknown keyword \"x-secrt\"; did you mean \"x-secret\"?\n"},
      {R"({"type":"string","frobnicate":true})",
       "/properties/a/frobnicate: unknown keyword \"frobnicate\"\n"},
      {R"({"type":"string","minimum":1})",
       "/properties/a/minimum: \"minimum\" does not apply to the type string\n"},
      {R"({"type":"integer","pattern":"x"})",
       "/properties/a/pattern: \"pattern\" does not apply to the type integer\n"},
      {R"({"type":"string","additionalProperties":false})",
       "/properties/a/additionalProperties: \"additionalProperties\" does not apply to the type "
       "string\n"},
      {R"({"type":"string","$schema":"http://json-schema.org/draft-07/schema#"})",
       "/properties/a/$schema: \"$schema\" is not allowed here; it belongs at the root\n"},
      {R"({"type":"string","nullable":true})",
       "/properties/a/nullable: \"nullable\" is not supported; from OpenAPI: use a type list with "
       "\"null\"\n"},
      {R"({"type":"string","deprecated":true})",
       "/properties/a/deprecated: \"deprecated\" is not supported; from a newer draft: say it in "
       "the "
       "description\n"},
      {R"({"type":"string","const":"x"})",
       "/properties/a/const: \"const\" is not allowed in a settings schema\n"},
      {R"({"$ref":"#/definitions/x"})",
       "/properties/a/$ref: references are not allowed in a settings schema\n"},
      {R"(false)", "/properties/a: must be a schema, an object, not boolean\n"},
      {R"("string")", "/properties/a: must be a schema, an object, not string\n"},
  });
  CHECK(settings(R"({"type":"object","properties":{"a":{"type":"string"},
                     "additionalProperties":false},"additionalProperties":false})") ==
        "/properties/additionalProperties: must be a schema, an object, not boolean; "
        "\"additionalProperties\" belongs beside \"properties\", not inside\n");
  CHECK(settings(R"({"type":"object","additionalProperties":false,"minimum":1})") ==
        "/minimum: \"minimum\" is not allowed here; it belongs into a property\n");
  CHECK(settings(R"({"type":"object","additionalProperties":false,"definitions":{}})") ==
        "/definitions: \"definitions\" is not allowed in a settings schema\n");
}

TEST_CASE("Keywords that the validator would ignore are errors in every profile", "[lint]") {
  for (const char* name : {"dependentRequired",
                           "dependentSchemas",
                           "prefixItems",
                           "unevaluatedProperties",
                           "unevaluatedItems",
                           "minContains",
                           "maxContains",
                           "$dynamicRef",
                           "$dynamicAnchor",
                           "$recursiveRef",
                           "$recursiveAnchor",
                           "$anchor",
                           "$vocabulary",
                           "contentEncoding",
                           "contentMediaType",
                           "contentSchema",
                           "deprecated",
                           "extends",
                           "disallow",
                           "divisibleBy",
                           "patternProperties",
                           "id",
                           "requird"}) {
    for (const auto profile :
         {SchemaProfile::settings, SchemaProfile::options, SchemaProfile::full}) {
      const std::string schema =
          std::string(R"({"type":"object","additionalProperties":false,")") + name + R"(":{}})";
      const auto result = compile_schema_text(schema, profile);
      CAPTURE(name, format_issues(result.issues));
      REQUIRE(result.issues.size() == 1);
      CHECK(result.issues[0].pointer == std::string("/") + name);
      CHECK(result.issues[0].keyword == name);
    }
  }
}

TEST_CASE("Keyword values have the right shape", "[lint]") {
  check_settings({
      {R"({"type":"integer","minimum":"5"})",
       "/properties/a/minimum: must be a number, not string\n"},
      {R"({"type":"integer","exclusiveMinimum":true})",
       "/properties/a/exclusiveMinimum: must be a number, not boolean; the boolean form is from "
       "draft 4\n"},
      {R"({"type":"number","multipleOf":0})", "/properties/a/multipleOf: must be greater than 0\n"},
      {R"({"type":"number","multipleOf":-1})",
       "/properties/a/multipleOf: must be greater than 0\n"},
      {R"({"type":"string","maxLength":"2"})",
       "/properties/a/maxLength: must be a whole number, not string\n"},
      {R"({"type":"string","maxLength":-2})",
       "/properties/a/maxLength: must be a whole number from 0\n"},
      {R"({"type":"string","maxLength":2.5})",
       "/properties/a/maxLength: must be a whole number from 0\n"},
      {R"({"type":"string","minLength":2.0})", "ok"},
      {R"({"type":"string","title":5})", "/properties/a/title: must be a string, not integer\n"},
      {R"({"type":"string","enum":[]})", "/properties/a/enum: must not be empty\n"},
      {R"({"type":"string","enum":"x"})", "/properties/a/enum: must be an array, not string\n"},
      {R"({"type":"string","enum":["x","x"]})",
       "/properties/a/enum: must not list a value twice\n"},
      {R"({"type":"string","format":"ipv5"})",
       "/properties/a/format: unknown format \"ipv5\"; did you mean \"ipv4\"?\n"},
      {R"({"type":"string","x-widget":"slider"})",
       "/properties/a/x-widget: must be one of textarea, select, radio\n"},
      {R"({"type":"string","x-secret":"yes"})",
       "/properties/a/x-secret: must be a boolean, not string\n"},
      {R"({"type":"string","examples":"x"})",
       "/properties/a/examples: must be an array, not string\n"},
  });
}

TEST_CASE("Patterns are what RE2 can do with the same meaning", "[lint]") {
  const std::string at = "/properties/a/pattern: the regular expression ";
  const auto pattern = [](const std::string& text) {
    return lint(settings_with(R"({"type":"string","pattern":)" +
                              sandforge::json::write(sandforge::json::Value(text)) + "}"),
                SchemaProfile::settings);
  };
  CHECK(pattern("^(a+)+$") == "ok");
  CHECK(pattern(R"(^[\w.\-]+@\d{1,3}\u00e4\cA\x41[^\s]$)") == "ok");
  CHECK(pattern("^(?:a|b)*?$") == "ok");
  CHECK(pattern("(a") == at + "missing ): (a\n");
  CHECK(pattern("a**") == at + "bad repetition operator: **\n");
  CHECK(pattern("[a") == at + "has an unclosed [\n");
  CHECK(pattern("[]") == at + "has an empty []\n");
  CHECK(pattern("(?=a)") == at + "uses look-ahead, which is not supported\n");
  CHECK(pattern("(?!a)") == at + "uses look-ahead, which is not supported\n");
  CHECK(pattern("(?<=a)b") == at + "uses look-behind, which is not supported\n");
  CHECK(pattern("(?<n>a)") == at + "uses a named group or flags, which are not supported\n");
  CHECK(pattern("(?i)a") == at + "uses a named group or flags, which are not supported\n");
  CHECK(pattern(R"((a)\1)") == at + "uses a back-reference, which is not supported\n");
  CHECK(pattern(R"(\Aa\z)") == at + "has an escape that is not supported: \\A\n");
  CHECK(pattern(R"([\S])") == at + "uses \\S inside [], which is not supported\n");
  CHECK(pattern(R"(\p{Letter})") == at + "invalid character class range: \\p{Letter}\n");
  CHECK(pattern("a{1001}") == at + "invalid repetition size: {1001}\n");
  CHECK(pattern("((a{500}){500})") == at + "invalid repetition size: {500}\n");
  CHECK(pattern(std::string(9000, 'a')) == at + "is longer than 8192 bytes\n");
  CHECK(pattern("\\") == at + "ends in a backslash\n");
}

TEST_CASE("Keywords of one field agree with each other", "[lint][cases.F04]") {
  check_settings({
      {R"({"type":"integer","minimum":5,"maximum":4})",
       "/properties/a/minimum: minimum 5 is greater than maximum 4\n"},
      {R"({"type":"string","minLength":5,"maxLength":4})",
       "/properties/a/minLength: minLength 5 is greater than maxLength 4\n"},
      {R"({"type":"string","enum":["x",1]})",
       "/properties/a/enum/1: 1 is not of the type string\n"},
      {R"({"type":"string","enum":["x","y"],"x-enumTitles":["X"]})",
       "/properties/a/x-enumTitles: must have one title for each value of \"enum\"\n"},
      {R"({"type":"string","x-patternMessage":"m"})",
       "/properties/a/x-patternMessage: \"x-patternMessage\" has no effect without \"pattern\"\n"},
      {R"({"type":"string","x-secret":true,"default":"x"})",
       "/properties/a/default: a secret has no default\n"},
      {R"({"type":"integer","default":"2"})",
       "/properties/a/default: the default is refused by its own schema: expected integer, got "
       "string; remove the quotes\n"},
      {R"({"type":"integer","minimum":1,"default":0})",
       "/properties/a/default: the default is refused by its own schema: 0 is less than the "
       "minimum "
       "1 (allowed: integer at least 1)\n"},
      {R"({"type":"string","default":null})",
       "/properties/a/default: the default is refused by its own schema: expected string, got "
       "null\n"},
  });
  CHECK(settings(R"({"type":"object","additionalProperties":false,"x-order":["cpuCuont"],
                     "properties":{"cpuCount":{"type":"integer"}}})") ==
        "/x-order/0: \"cpuCuont\" is not a property; did you mean \"cpuCount\"?\n");
}

TEST_CASE("All mistakes are reported at once", "[lint]") {
  CHECK(settings(R"({"type":"object","additionalProperties":false,"properties":{
      "a":{"type":"strng"}, "b":{"type":"string","minLenght":1}, "c":{"type":"integer","minimum":"1"}}})") ==
        "/properties/a/type: unknown type \"strng\"; did you mean \"string\"?\n"
        "/properties/b/minLenght: unknown keyword \"minLenght\"; did you mean \"minLength\"?\n"
        "/properties/c/minimum: must be a number, not string\n");
}

TEST_CASE("Options schemas may nest", "[lint]") {
  CHECK(options(R"({
    "type":"object", "additionalProperties":false, "required":["endpoint"],
    "properties":{
      "endpoint":{"type":"string","format":"uri"},
      "env":{"type":"object","additionalProperties":{"type":"string"},
             "propertyNames":{"pattern":"^[A-Za-z_][A-Za-z0-9_]*$"}},
      "mounts":{"type":"array","uniqueItems":true,"items":{"$ref":"#/definitions/mount"}},
      "level":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},
      "auth":{"type":"object","additionalProperties":false,
        "properties":{"kind":{"type":"string"},"token":{"type":"string","x-secret":true}},
        "oneOf":[{"properties":{"kind":{"const":"none"}}},
                 {"properties":{"kind":{"const":"token"}},"required":["token"]}]},
      "timeout":{"type":["integer","null"],"minimum":0}
    },
    "if":{"properties":{"level":{"const":"b"}},"required":["level"]},
    "then":{"required":["auth"]},
    "dependencies":{"auth":["endpoint"]},
    "definitions":{"mount":{"type":"object","additionalProperties":false,
      "properties":{"source":{"type":"string"},"readOnly":{"type":"boolean","default":false}},
      "required":["source"]}}})") == "ok");
}

TEST_CASE("Options schemas have limits too", "[lint]") {
  const auto with = [](const std::string& more) {
    return lint(R"({"type":"object","additionalProperties":false,)" + more + "}",
                SchemaProfile::options);
  };
  CHECK(
      with(R"("properties":{"a":{"type":"object"}})") ==
      "/properties/a: \"additionalProperties\" is missing; add \"additionalProperties\": false, or "
      "a schema for a map\n");
  CHECK(with(R"("properties":{"a":{"type":"array","items":[{"type":"string"}]}})") ==
        "/properties/a/items: must be one schema: tuples are not supported\n");
  CHECK(with(R"("properties":{"a":{"type":["string","integer"]}})") ==
        "/properties/a/type: must be one type, or one type and \"null\"\n");
  CHECK(with(R"("not":{})") == "/not: \"not\" is not allowed in an options schema\n");
  CHECK(with(R"("allOf":[])") == "/allOf: must not be empty\n");
  CHECK(with(R"("anyOf":[])") == "/anyOf: must not be empty\n");
  CHECK(with(R"("oneOf":[])") == "/oneOf: must not be empty\n");
  CHECK(with(R"("allOf":{})") == "/allOf: must be an array of schemas, not object\n");
  CHECK(with(R"("then":{})") == "/then: \"then\" has no effect without \"if\"\n");
  CHECK(with(R"("if":{"if":{}})") ==
        "/if/if: \"if\" inside \"if\", \"then\" or \"else\" is not supported\n");
  CHECK(with(R"("properties":{"kind":{"type":"string"}},"required":["knid"])") ==
        "/required/0: \"knid\" is required but not declared; did you mean \"kind\"?\n");
  CHECK(with(R"("required":["a","a"])") ==
        "/required/0: \"a\" is required but not declared\n"
        "/required/1: \"a\" is required but not declared\n"
        "/required: must not list a name twice\n");
}

TEST_CASE("References are local, lead somewhere and end", "[lint][cases.F04]") {
  const auto ref = [](const std::string& target) {
    return lint(R"({"type":"object","additionalProperties":false,
      "definitions":{"mount":{"type":"string"}},"properties":{"a":{"$ref":")" +
                    target + R"("}}})",
                SchemaProfile::options);
  };
  const std::string at = "/properties/a/$ref: the reference ";
  const std::string only = "; only #/definitions/NAME and #/$defs/NAME can be referenced\n";
  CHECK(ref("#/definitions/mount") == "ok");
  CHECK(ref("#/definitions/m%6funt") == "ok");
  CHECK(ref("#/definitions/mont") ==
        at + "\"#/definitions/mont\" leads nowhere; did you mean \"#/definitions/mount\"?\n");
  CHECK(ref("http://127.0.0.1:1/x.json") ==
        at + "\"http://127.0.0.1:1/x.json\" is not local" + only);
  CHECK(ref("file:///etc/passwd") == at + "\"file:///etc/passwd\" is not local" + only);
  CHECK(ref("other.json#/definitions/mount") ==
        at + "\"other.json#/definitions/mount\" is not local" + only);
  CHECK(ref("#mount") == at + "\"#mount\" is not local" + only);
  CHECK(ref("#") == at + "\"#\" is not to a definition" + only);
  CHECK(ref("#/properties/a") == at + "\"#/properties/a\" is not to a definition" + only);
  CHECK(lint(R"({"type":"object","additionalProperties":false,"definitions":{"m":{"type":"string"}},
                 "properties":{"a":{"$ref":"#/definitions/m","maxLength":3}}})",
             SchemaProfile::options) ==
        "/properties/a/maxLength: \"maxLength\" beside \"$ref\" has no effect; move it into the "
        "definition\n");
}

TEST_CASE("Text that is no JSON is refused with its place", "[lint]") {
  CHECK(settings("{\n  \"type\": }").rfind("(root): line 2, column 11: ", 0) == 0);
  CHECK(settings(R"({"type":"object","type":"object"})").rfind("(root): line 1, column ", 0) == 0);
  CHECK(lint(std::string(1048577, ' '), SchemaProfile::settings) ==
        "(root): the schema is larger than 1 MiB\n");
}
