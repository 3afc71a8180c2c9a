// Reading documents by type, and the schema builder.
#include <sandforge/plugin/settings.hpp>

#include <catch2/catch.hpp>

#include "thrown.hpp"

using namespace sandforge::plugin;
using sandforge::test::code_of;

TEST_CASE("documents are read by type, with the pointer of what is wrong") {
  const Document d =
      Document::parse(R"({"s":"x","i":2.0,"n":1.5,"b":true,"o":{"k":1},"none":null,"a/b":1})");
  CHECK(d.string("s") == "x");
  CHECK(d.integer("i") == 2);
  CHECK(d.number("n") == 1.5);
  CHECK(d.boolean("b") == true);
  CHECK(d.document("o").integer("k") == 1);
  CHECK_FALSE(d.string("none"));
  CHECK_FALSE(d.has("none"));
  CHECK_FALSE(d.integer("absent"));
  CHECK(code_of([&] { d.integer("n"); }) == Code::invalid);
  CHECK(code_of([&] { d.integer("s"); }) == Code::invalid);
  CHECK(code_of([&] { d.number("s"); }) == Code::invalid);
  CHECK(code_of([&] { d.boolean("s"); }) == Code::invalid);
  CHECK(code_of([&] { d.document("s"); }) == Code::invalid);
  CHECK(code_of([] { Document::parse("[]"); }) == Code::invalid);
  CHECK(code_of([] { Document::parse("{"); }) == Code::invalid);
  CHECK(Document::parse("").object().empty());
  try {
    d.string("a/b");
    FAIL("a number was read as text");
  } catch (const Error& e) {
    CHECK(e.details().find("pointer")->as_string() == "/a~1b");
  }
}

TEST_CASE("a settings schema is closed and says what it was told") {
  SettingsSchema schema;
  schema.string("region").title("Region").one_of({"us", "eu"}).fallback("us");
  schema.number("share").bounds(0.5, 2).description("Part of a core");
  schema.boolean("fast").set("x-order", 3);
  schema.string("name").lengths(1, 5).pattern("^a");
  const Document text = Document::parse(schema.text());
  CHECK(text.boolean("additionalProperties") == false);
  const Document members = text.document("properties");
  CHECK(members.document("region").string("default") == "us");
  CHECK(members.document("share").number("minimum") == 0.5);
  CHECK(members.document("fast").integer("x-order") == 3);
  CHECK(members.document("name").string("pattern") == "^a");
  CHECK(SettingsSchema::from_text(R"({"type":"object"})").text() == R"({"type":"object"})");
}

TEST_CASE("numbers that are no integers are refused, whole ones of any notation are taken") {
  const Document d = Document::parse(
      R"({"max":9223372036854775807,"whole":3.0e3,"huge":1e300,"half":0.5,"minus":-7})");
  CHECK(d.integer("max") == INT64_MAX);
  CHECK(d.integer("whole") == 3000);
  CHECK(d.integer("minus") == -7);
  CHECK(code_of([&] { d.integer("huge"); }) == Code::invalid);
  CHECK(code_of([&] { d.integer("half"); }) == Code::invalid);
  CHECK(d.number("minus") == -7.0);
  CHECK(d.document("none").object().empty());
}

TEST_CASE("a schema keeps the order and the type of its members, and takes any keyword") {
  SettingsSchema schema;
  schema.integer("b").bounds(1, 8).fallback(2).set("x-unit", "cores");
  schema.boolean("a").description("whether");
  CHECK(schema.text() ==
        R"({"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{)"
        R"("b":{"type":"integer","minimum":1,"maximum":8,"default":2,"x-unit":"cores"},)"
        R"("a":{"type":"boolean","description":"whether"}},"additionalProperties":false})");
  CHECK(code_of([] { SettingsSchema::from_text("nothing"); }) == Code::invalid);
}
