#include <sandforge/support/shell.hpp>

#include <iostream>

int main() {
  const std::string line = sandforge::command_line("echo", {"it's", "two words"});
  std::cout << line << '\n';
  return line == R"(echo 'it'\''s' 'two words')" ? 0 : 1;
}
