// Cases of a test program without a framework.
#include <sandforge/testing/cases.hpp>

#include <catch2/catch.hpp>

using namespace sandforge::testing;

namespace {

int run(std::vector<std::string> words, const std::vector<Case>& cases) {
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  return run_cases(static_cast<int>(argv.size()), argv.data(), cases);
}

}  // namespace

TEST_CASE("cases run all or by name, and the exit code says how it went") {
  std::string ran;
  const std::vector<Case> cases = {{"good", [&] { ran += "g"; }},
                                   {"bad",
                                    [&] {
                                      ran += "b";
                                      expect_equal(1, 2, "a number");
                                    }},
                                   {"last", [&] { ran += "l"; }}};
  CHECK(run({"program"}, cases) == 1);
  CHECK(ran == "gbl");
  CHECK(run({"program", "last", "good"}, cases) == 0);
  CHECK(ran == "gbllg");
  CHECK(run({"program", "bad"}, cases) == 1);
  CHECK(run({"program", "none"}, cases) == 2);
}

TEST_CASE("an expectation that does not hold says what was got") {
  CHECK_NOTHROW(expect(true, "never"));
  CHECK_NOTHROW(expect_equal(std::string("a"), "a", "the same"));
  CHECK_THROWS_WITH(expect(false, "the world"), "the world");
  CHECK_THROWS_WITH(expect_equal(std::string("a"), "b", "output"),
                    "output: got \"a\", wanted \"b\"");
}
