#include "lint/lexer.hpp"

#include <catch2/catch.hpp>

using namespace sandforge::lint;

namespace {

std::string words(std::string_view text) {
  std::string joined;
  for (const Token& token : tokenize(text)) {
    joined += (joined.empty() ? "" : " ") + token.text;
  }
  return joined;
}

}  // namespace

TEST_CASE("comments are no tokens, whatever they hold") {
  CHECK(words("a // b \" c\nd /* e \" \n f */ g") == "a d g");
  CHECK(words("a /* open") == "a");
}

TEST_CASE("strings are one token, with escapes and raw ones") {
  CHECK(words(R"(f("a\"b // c", 'x', '\''))") == R"(f ( a\"b // c , x , \' ))");
  CHECK(words("R\"x(a)\" \"b)x\" y") == "a)\" \"b y");
  CHECK(words("u8\"t\" L'c'") == "t L c");
}

TEST_CASE("an include is one token, other directives are read like code") {
  CHECK(words("#include <a/b.h>\n# include \"c.hpp\"\n#define X f(1'000)") ==
        "<a/b.h> \"c.hpp\" define X f ( 1'000 )");
}

TEST_CASE("a token knows its line, also after strings and comments of several lines") {
  const auto tokens = tokenize("/*\n\n*/ a\nR\"(\n\n)\" b");
  REQUIRE(tokens.size() == 3);
  CHECK(tokens[0].line == 3);
  CHECK(tokens[1].line == 4);
  CHECK(tokens[2].line == 6);
}

TEST_CASE("brackets know their partner, also in text that is not balanced") {
  const auto tokens = tokenize("f(a[1]) } {");
  REQUIRE(tokens.size() == 9);
  CHECK(tokens[1].partner == 6);
  CHECK(tokens[6].partner == 1);
  CHECK(tokens[3].partner == 5);
  CHECK(tokens[7].partner == static_cast<std::size_t>(-1));
  CHECK(tokens[8].partner == static_cast<std::size_t>(-1));
}
