#include "sandforge/support/suggest.hpp"

#include <catch2/catch.hpp>

using sandforge::edit_distance;
using sandforge::nearest_name;

TEST_CASE("suggest: distances") {
  CHECK(edit_distance("", "", 3) == 0);
  CHECK(edit_distance("abc", "abc", 0) == 0);
  CHECK(edit_distance("abc", "abd", 3) == 1);
  CHECK(edit_distance("abc", "acb", 3) == 1);
  CHECK(edit_distance("abc", "ab", 3) == 1);
  CHECK(edit_distance("", "abc", 3) == 3);
  CHECK(edit_distance("kitten", "sitting", 5) == 3);
  CHECK(edit_distance("ca", "abc", 5) == 3);  // optimal string alignment, not 2
  CHECK(edit_distance("abcd", "badc", 5) == 2);
}

TEST_CASE("suggest: beyond the limit the answer is limit + 1") {
  CHECK(edit_distance("kitten", "sitting", 2) == 3);
  CHECK(edit_distance("abc", "xyz", 1) == 2);
  CHECK(edit_distance("a", "abcdef", 2) == 3);
  CHECK(edit_distance("abxcd", "baxdc", 2) == 2);
}

TEST_CASE("suggest: the nearest name") {
  const std::vector<std::string> known = {"cpuCount", "memoryMB", "timeout", "template", "env"};
  CHECK(nearest_name("cpuCuont", known) == "cpuCount");
  CHECK(nearest_name("cpucount", known) == "cpuCount");
  CHECK(nearest_name("CPUCOUTN", known) == "cpuCount");
  CHECK(nearest_name("memroyMb", known) == "memoryMB");
  CHECK(nearest_name("tiemout", known) == "timeout");
  CHECK(nearest_name("enw", known) == "env");
  CHECK(nearest_name("templates", known) == "template");
}

TEST_CASE("suggest: nothing close, nothing said") {
  const std::vector<std::string> known = {"cpuCount", "env", "x"};
  CHECK_FALSE(nearest_name("region", known));
  CHECK_FALSE(nearest_name("", known));
  CHECK_FALSE(nearest_name("y", known));
  CHECK_FALSE(nearest_name("cpuCount", {}));
  CHECK_FALSE(nearest_name(std::string(1'000'000, 'a'), {std::string(1'000'000, 'a')}));
}

TEST_CASE("suggest: the first of equals") {
  CHECK(nearest_name("port1", {"ports", "portx"}) == "ports");
}
