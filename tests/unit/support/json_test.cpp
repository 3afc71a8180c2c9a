#include "sandforge/support/json.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace json = sandforge::json;
using json::Array;
using json::Object;
using json::Value;

namespace {

Value must_parse(std::string_view text) {
  auto result = json::parse(text);
  INFO(text << ": " << result.error.message);
  REQUIRE(result.ok());
  return std::move(result.value);
}

}  // namespace

TEST_CASE("json: values of every kind are read") {
  const Value v =
      must_parse(R"({"n":null,"t":true,"f":false,"i":-7,"d":2.5,"s":"x","a":[1],"o":{}})");
  CHECK(v.find("n")->is_null());
  CHECK(v.find("t")->as_bool());
  CHECK_FALSE(v.find("f")->as_bool());
  CHECK(v.find("i")->as_integer() == -7);
  CHECK(v.find("d")->as_number() == 2.5);
  CHECK(v.find("s")->as_string() == "x");
  CHECK(v.find("a")->as_array().size() == 1);
  CHECK(v.find("o")->as_object().empty());
  CHECK(v.find("absent") == nullptr);
  CHECK(v.find("i")->find("x") == nullptr);
  CHECK(v.as_object().begin()->first == "n");
  CHECK_THROWS_AS(v.as_array(), std::bad_variant_access);
}

TEST_CASE("json: constructors choose the kind") {
  CHECK(Value().is_null());
  CHECK(Value("text").is_string());
  CHECK(Value(std::string_view("text")).is_string());
  CHECK(Value(7U).is_integer());
  CHECK(Value(std::size_t{7}).as_integer() == 7);
  CHECK(Value(std::uint64_t{9223372036854775807ULL}).is_integer());
  CHECK(Value(std::uint64_t{9223372036854775808ULL}).as_number() == 9223372036854775808.0);
  CHECK(Value(Array{1, "two"}).as_array()[1].as_string() == "two");
}

TEST_CASE("json: an object keeps its order and replaces in place") {
  Object object;
  object.set("b", 1);
  object.set("a", 2);
  object.set("b", 3);
  object["c"] = "new";
  object["a"] = 4;
  CHECK(json::write(object) == R"({"b":3,"a":4,"c":"new"})");
  CHECK(object.contains("a"));
  CHECK(object.erase("a"));
  CHECK_FALSE(object.erase("a"));
  CHECK(object.size() == 2);
}

TEST_CASE("json: equality ignores the order of members and the kind of a number") {
  CHECK(must_parse(R"({"a":1,"b":[1.0]})") == must_parse(R"({"b":[1],"a":1.0})"));
  CHECK(must_parse(R"({"a":1})") != must_parse(R"({"a":1,"b":1})"));
  CHECK(must_parse(R"({"a":1})") != must_parse(R"({"b":1})"));
  CHECK(must_parse("[1,2]") != must_parse("[2,1]"));
  CHECK(Value(1) != Value(true));
  CHECK(Value("1") != Value(1));
  CHECK(Value() == Value(nullptr));
  CHECK(Value(std::int64_t{9007199254740993}) != Value(9007199254740992.0));
  CHECK(Value(std::int64_t{INT64_MAX}) != Value(9223372036854775808.0));
  CHECK(Value(std::int64_t{INT64_MIN}) == Value(-9223372036854775808.0));
  CHECK(Value(std::nan("")) != Value(0));
}

TEST_CASE("json: equality and merging of large objects are not quadratic") {
  std::vector<json::Member> forward;
  std::vector<json::Member> backward;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    forward.emplace_back("key" + std::to_string(i), i);
    backward.emplace_back("key" + std::to_string(kCount - 1 - i), kCount - 1 - i);
  }
  const Value a(Object::adopt(std::move(forward)));
  Value b(Object::adopt(std::move(backward)));
  CHECK(a == b);
  json::merge_patch(b, a);
  CHECK(a == b);
}

TEST_CASE("json: pointers") {
  const Value v = must_parse(R"({"a/b":{"m~n":[10,20]},"":{"":1},"-":5})");
  CHECK(v.at_pointer("") == &v);
  CHECK(v.at_pointer("/a~1b/m~0n/1")->as_integer() == 20);
  CHECK(v.at_pointer("//")->as_integer() == 1);
  CHECK(v.at_pointer("/-")->as_integer() == 5);
  for (const char* bad :
       {"a", "/a~1b/m~0n/2", "/a~1b/m~0n/01", "/a~1b/m~0n/-", "/a~1b/m~0n/1x", "/a~1b/m~0n/",
        "/a~2b", "/a~", "/a~1b/m~0n/99999999999999999999", "/a~1b/m~0n/+1", "/-/x"}) {
    INFO(bad);
    CHECK(v.at_pointer(bad) == nullptr);
  }
  CHECK(json::escape_pointer("a/b~c") == "a~1b~0c");
}

TEST_CASE("json: merge patch follows the examples of RFC 7386") {
  struct Row {
    const char *target, *patch, *result;
  };
  const Row rows[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
      {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
      {R"({"a":"foo"})", R"(null)", R"(null)"},
      {R"({"a":"foo"})", R"("bar")", R"("bar")"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const Row& row : rows) {
    INFO(row.target << " + " << row.patch);
    Value target = must_parse(row.target);
    json::merge_patch(target, must_parse(row.patch));
    CHECK(json::write(target) == row.result);
  }
}
