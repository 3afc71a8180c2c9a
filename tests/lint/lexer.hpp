// Splits C and C++ text into tokens, as far as the rules of this folder need it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sandforge::lint {

enum class Kind {
  word,       // identifier or keyword
  number,     // with digit separators
  string,     // text is what stands between the quotes; raw strings too
  character,  // text is what stands between the quotes
  include,    // text is the name in an #include, with its quotes or angle brackets
  mark,       // operator or bracket; `::` and `->` are one token, all others one character each
};

struct Token {
  Kind kind;
  std::string text;
  int line;  // from 1
  // For a bracket, the index of its partner; npos for all others and where there is none.
  std::size_t partner = static_cast<std::size_t>(-1);
};

// Comments are dropped. Never fails: what cannot be read ends the list.
std::vector<Token> tokenize(std::string_view text);

}  // namespace sandforge::lint
