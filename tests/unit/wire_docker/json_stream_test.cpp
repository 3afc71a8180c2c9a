#include "sandforge/wire/docker/json_stream.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace sandforge;
using wire::docker::JsonStream;

namespace {

std::vector<std::string> objects_of(JsonStream& stream, std::string_view bytes, std::size_t piece) {
  std::vector<std::string> out;
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    while (auto object = stream.next(part))
      out.push_back(json::write(json::Value(std::move(*object))));
  }
  return out;
}

}  // namespace

TEST_CASE("objects are read one by one, wherever they are cut and whatever is between them") {
  const std::string bytes = "{\"a\":\"}{\\\"\"}\r\n{\"b\":[{},{}]}{\"c\":\"\\\\\"} \n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    JsonStream stream;
    CHECK((objects_of(stream, bytes, piece) ==
           std::vector<std::string>{R"({"a":"}{\""})", R"({"b":[{},{}]})", R"({"c":"\\"})"}));
    CHECK(stream.whole());
  }
}

TEST_CASE("an object that is cut short, too long, or none, is known") {
  JsonStream cut;
  CHECK(objects_of(cut, R"({"a":1}{"b")", 3).size() == 1);
  CHECK_FALSE(cut.whole());
  CHECK(cut.error().empty());

  JsonStream long_one(16);
  CHECK(objects_of(long_one, R"({"a":1}{"a":"0123456789abcdef"}{"b":1})", 100).size() == 1);
  CHECK(long_one.error() == "an object of more than 16 bytes");

  JsonStream none;
  CHECK(objects_of(none, "{\"a\":1}[1]{\"b\":2}", 4).size() == 1);
  CHECK(none.error() == "something that is no object");

  JsonStream wrong;
  CHECK(objects_of(wrong, "{\"a\":}", 6).empty());
  CHECK_FALSE(wrong.error().empty());

  JsonStream closed;
  CHECK(objects_of(closed, "}", 1).empty());
  CHECK_FALSE(closed.error().empty());
}
