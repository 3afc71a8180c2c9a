#include "sandforge/support/shell.hpp"

#include <algorithm>
#include <stdexcept>

namespace sandforge {
namespace {

// Not std::isalnum: a locale may call bytes letters that the shell's locale does not.
bool is_bare(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("._-/=:@").find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_quote(std::string_view word) {
  if (word.find('\0') != std::string_view::npos) {
    throw std::invalid_argument("a shell word cannot hold a NUL byte");
  }
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_bare)) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out.push_back(c);
    }
  }
  out.push_back('\'');
  return out;
}

std::string command_line(std::string_view command, const std::vector<std::string>& args) {
  std::string out(command);
  for (const std::string& arg : args) {
    out.push_back(' ');
    out += shell_quote(arg);
  }
  return out;
}

}  // namespace sandforge
