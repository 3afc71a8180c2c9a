// Shapes of co_await that g++ 12 compiles to wrong code: in a condition, in ?:, in a handler, as
// part of a larger expression, and with a braced list, a lambda that captures by value, or a ?:
// inside the awaited expression (what it makes is destroyed twice).
#include <array>
#include <string_view>

#include "lint/lint.hpp"

namespace sandforge::lint {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

bool is(const Token& token, std::string_view text) {
  return (token.kind == Kind::mark || token.kind == Kind::word) && token.text == text;
}

bool opens(const Token& token) {
  return is(token, "(") || is(token, "[") || is(token, "{");
}
bool closes(const Token& token) {
  return is(token, ")") || is(token, "]") || is(token, "}");
}

class Awaits {
 public:
  Awaits(const std::vector<Token>& tokens, Findings& findings)
      : tokens_(tokens), findings_(findings) {}

  void run() {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].partner != none && opens(tokens_[i])) {
        open.push_back(i);
      } else if (tokens_[i].partner != none && closes(tokens_[i])) {
        open.pop_back();
      } else if (is(tokens_[i], "co_await") && (i == 0 || !is(tokens_[i - 1], "operator"))) {
        check_place(i, open);
        check_handler(i, open);
        check_conditional(i);
        check_inside(i);
      }
    }
  }

 private:
  void check_place(std::size_t at, const std::vector<std::size_t>& open) {
    if (open.empty() || (is(tokens_[open.back()], "{") && is_block(open.back()))) {
      return;
    }
    const std::size_t bracket = open.back();
    const std::string_view before = bracket == 0 ? "" : std::string_view(tokens_[bracket - 1].text);
    constexpr std::array<std::string_view, 5> conditions = {"if", "while", "switch", "for",
                                                            "constexpr"};
    for (const std::string_view word : conditions) {
      if (is(tokens_[bracket], "(") && before == word) {
        add("co-await-condition", at, "co_await in a condition: bind it to a named local first");
        return;
      }
    }
    add("co-await-nested", at,
        "co_await as part of a larger expression: bind it to a named local first");
  }

  void check_handler(std::size_t at, const std::vector<std::size_t>& open) {
    for (std::size_t i = open.size(); i > 0; --i) {
      const std::size_t brace = open[i - 1];
      if (!is(tokens_[brace], "{")) {
        continue;
      }
      if (is_lambda_body(brace)) {
        return;  // another function, which only begins in the handler
      }
      const std::size_t parenthesis =
          brace > 0 && is(tokens_[brace - 1], ")") ? tokens_[brace - 1].partner : none;
      if (parenthesis != none && parenthesis > 0 && is(tokens_[parenthesis - 1], "catch")) {
        add("co-await-catch", at, "co_await in a handler: leave the handler first");
        return;
      }
    }
  }

  // `] {`, `](…) {`, and both with words or a return type in between.
  bool is_lambda_body(std::size_t brace) const {
    std::size_t i = brace;
    while (i > 0 && !opens(tokens_[i - 1]) && !closes(tokens_[i - 1]) && !is(tokens_[i - 1], ";")) {
      --i;
    }
    if (i > 0 && is(tokens_[i - 1], ")") && tokens_[i - 1].partner != none) {
      i = tokens_[i - 1].partner;
    }
    return i > 0 && is(tokens_[i - 1], "]");
  }

  // A question mark beside it, in the same statement and the same brackets.
  void check_conditional(std::size_t at) {
    for (std::size_t i = at; i > 0; --i) {
      const Token& token = tokens_[i - 1];
      if (is(token, ";") || opens(token) || is(token, "}")) {
        break;
      }
      if (is(token, "?")) {
        add("co-await-conditional", at, "co_await in ?: : bind it to a named local first");
        return;
      }
      if (closes(token) && token.partner != none) {
        i = token.partner + 1;
      }
    }
    for (std::size_t i = at + 1; i < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      if (is(token, ";") || closes(token)) {
        break;
      }
      if (is(token, "?")) {
        add("co-await-conditional", at, "co_await in ?: : bind it to a named local first");
        return;
      }
      if (opens(token) && token.partner != none) {
        i = token.partner;
      }
    }
  }

  // From co_await to the end of its expression; bodies of lambdas are another function.
  void check_inside(std::size_t at) {
    int depth = 0;
    for (std::size_t i = at + 1; i < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      if (is(token, ";") || (closes(token) && depth == 0)) {
        return;
      }
      if (is(token, "[") && is_introducer(i) && captures_a_copy(i)) {
        add("co-await-lambda", i,
            "a lambda that captures by value inside a co_await expression: name it first");
        return;
      }
      if (is(token, "?") && depth > 0) {
        add("co-await-conditional", i, "?: inside a co_await expression: name its result first");
        return;
      }
      if (is(token, "{") && token.partner != none) {
        if (!is_block(i)) {
          add("co-await-braces", i,
              "braced list inside a co_await expression: name the object first");
          return;
        }
        i = token.partner;
      } else if (opens(token)) {
        ++depth;
      } else if (closes(token)) {
        --depth;
      }
    }
  }

  // A subscript follows a value; the brackets of a lambda begin one.
  bool is_introducer(std::size_t bracket) const {
    const Token& before = tokens_[bracket - 1];
    const bool value = before.kind == Kind::word || before.kind == Kind::string ||
                       is(before, ")") || is(before, "]");
    return tokens_[bracket].partner != none && !value;
  }

  // References and `this` are copied without harm.
  bool captures_a_copy(std::size_t bracket) const {
    bool at_start = true;
    for (std::size_t i = bracket + 1; i < tokens_[bracket].partner; ++i) {
      const Token& token = tokens_[i];
      if (at_start && !is(token, "&") && !is(token, "this")) {
        return true;
      }
      at_start = is(token, ",");
      if (opens(token) && token.partner != none) {
        i = token.partner;
      }
    }
    return false;
  }

  // A block holds statements; a braced list holds expressions. After `)`, `]` and the words that
  // may follow a parameter list stands a body, also an empty one.
  bool is_block(std::size_t brace) const {
    if (brace == 0) {
      return true;
    }
    constexpr std::array<std::string_view, 12> before_body = {
        ")",     "]",   "mutable", "noexcept", "const", "override",
        "final", "try", "do",      "else",     ";",     "}"};
    for (const std::string_view text : before_body) {
      if (is(tokens_[brace - 1], text)) {
        return true;
      }
    }
    for (std::size_t i = brace + 1; i < tokens_[brace].partner && i < tokens_.size(); ++i) {
      if (is(tokens_[i], ";")) {
        return true;
      }
      if (opens(tokens_[i]) && tokens_[i].partner != none) {
        if (is(tokens_[i], "{") && is_block(i)) {
          return true;
        }
        i = tokens_[i].partner;
      }
    }
    return false;
  }

  void add(std::string rule, std::size_t at, std::string message) {
    findings_.add(std::move(rule), tokens_[at].line, std::move(message));
  }

  const std::vector<Token>& tokens_;
  Findings& findings_;
};

}  // namespace

void check_coroutines(const Source& source, Findings& findings) {
  Awaits(source.tokens, findings).run();
}

}  // namespace sandforge::lint
