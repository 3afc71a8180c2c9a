#include "sandforge/support/shell.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>

using sandforge::command_line;
using sandforge::shell_quote;

namespace {

// What a real shell makes of `text`.
std::string shell_output(const std::string& text) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(text.c_str(), "r"), pclose);
  REQUIRE(pipe);
  std::string out;
  char buffer[4096];
  while (const std::size_t n = fread(buffer, 1, sizeof(buffer), pipe.get()))
    out.append(buffer, n);
  return out;
}

}  // namespace

TEST_CASE("shell: what passes bare") {
  for (const char* bare : {"a", "Z9", "./x-y_z", "--key=value", "user@host:22", "=", "-"}) {
    CHECK(shell_quote(bare) == bare);
  }
}

TEST_CASE("shell: everything else is quoted") {
  CHECK(shell_quote("") == "''");
  CHECK(shell_quote("a b") == "'a b'");
  CHECK(shell_quote("it's") == "'it'\\''s'");
  CHECK(shell_quote("'") == "''\\'''");
  CHECK(shell_quote("$HOME\n`x`\"\\") == "'$HOME\n`x`\"\\'");
  CHECK(shell_quote("~") == "'~'");
  CHECK(shell_quote("a,b") == "'a,b'");
  CHECK(shell_quote("\xC3\xA9") == "'\xC3\xA9'");
}

TEST_CASE("shell: NUL is refused") {
  CHECK_THROWS_AS(shell_quote(std::string_view("a\0b", 3)), std::invalid_argument);
  CHECK_THROWS_AS(command_line("x", {std::string(1, '\0')}), std::invalid_argument);
}

TEST_CASE("shell: the command is shell text, the arguments are not") {
  CHECK(command_line("echo a | cat", {}) == "echo a | cat");
  CHECK(command_line("echo", {"a", "", "b c", "$x"}) == "echo a '' 'b c' '$x'");
}

TEST_CASE("shell: every byte but NUL survives a real shell") {
  std::vector<std::string> args;
  std::string all;
  std::string expected;
  for (int c = 1; c < 256; ++c) {
    all.push_back(static_cast<char>(c));
    args.emplace_back(1, static_cast<char>(c));
    args.emplace_back("x" + std::string(2, static_cast<char>(c)));
  }
  args.push_back(all);
  args.emplace_back();
  args.emplace_back("'''");
  args.emplace_back("a\n\n");
  for (const std::string& arg : args)
    expected += "[" + arg + "]";
  CHECK(shell_output(command_line("printf '[%s]'", args)) == expected);
}
