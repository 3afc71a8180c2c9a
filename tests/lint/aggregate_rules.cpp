// Aggregates as parameters of coroutines: g++ 12 destroys them twice. A class that goes into a
// coroutine has a constructor of its own.
#include <algorithm>
#include <array>
#include <string_view>

#include "lint/lint.hpp"

namespace sandforge::lint {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

bool is(const Token& token, std::string_view text) {
  return (token.kind == Kind::mark || token.kind == Kind::word) && token.text == text;
}

template <std::size_t N>
bool is_one_of(const Token& token, const std::array<std::string_view, N>& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view text) { return is(token, text); });
}

// The index of the `>` that closes the `<` at open, or none.
std::size_t close_angle(const std::vector<Token>& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (is(tokens[i], "<")) {
      ++depth;
    } else if (is(tokens[i], ">") && --depth == 0) {
      return i;
    } else if (is(tokens[i], ";") || is(tokens[i], "{")) {
      return none;
    } else if (is(tokens[i], "(") && tokens[i].partner != none) {
      i = tokens[i].partner;
    }
  }
  return none;
}

// The body of a class: whether it declares data, and whether it is an aggregate.
class Body {
 public:
  Body(const std::vector<Token>& tokens, std::size_t open, std::string_view name)
      : tokens_(tokens), name_(name) {
    std::size_t begin = open + 1;
    for (std::size_t i = begin; i < tokens[open].partner; ++i) {
      if (is(tokens[i], "{") && tokens[i].partner != none) {
        const bool ends_function = i > 0 && !is(tokens[i - 1], "=") && has_call(begin, i);
        i = tokens[i].partner;
        if (ends_function) {
          look_at(begin, i);
          begin = i + 1;
        }
      } else if (is(tokens[i], ";")) {
        look_at(begin, i);
        begin = i + 1;
      } else if (is(tokens[i], "(") && tokens[i].partner != none) {
        i = tokens[i].partner;
      }
    }
  }
  bool is_aggregate() const { return has_data_ && !has_constructor_ && !is_closed_; }

 private:
  bool has_call(std::size_t from, std::size_t to) const {
    for (std::size_t i = from; i < to; ++i) {
      if (is(tokens_[i], "(")) {
        return true;
      }
    }
    return false;
  }

  void look_at(std::size_t from, std::size_t to) {
    constexpr std::array<std::string_view, 9> no_data = {"using",   "friend",   "static",
                                                         "typedef", "template", "enum",
                                                         "struct",  "class",    "static_assert"};
    constexpr std::array<std::string_view, 4> closing = {"private", "protected", "virtual",
                                                         "override"};
    for (std::size_t i = from; i < to; ++i) {
      is_closed_ = is_closed_ || is_one_of(tokens_[i], closing);
      if (!is(tokens_[i], name_)) {
        continue;
      }
      const bool destroys = i > from && is(tokens_[i - 1], "~");
      const bool inherits = i + 1 == to && i > from && is(tokens_[i - 1], "::");
      has_constructor_ = has_constructor_ || inherits || (!destroys && is(tokens_[i + 1], "("));
    }
    const std::size_t first = from + (to > from + 1 && is(tokens_[from + 1], ":") ? 2 : 0);
    if (first < to && !is_one_of(tokens_[first], no_data) && !has_call(first, to)) {
      has_data_ = true;
    }
  }

  const std::vector<Token>& tokens_;
  const std::string_view name_;
  bool has_data_ = false;
  bool has_constructor_ = false;
  bool is_closed_ = false;
};

// The brace that opens the class named at i, or none for a mere declaration.
std::size_t body_of(const std::vector<Token>& tokens, std::size_t i) {
  for (std::size_t at = i + 1; at < tokens.size(); ++at) {
    if (is(tokens[at], "{")) {
      return tokens[at].partner != none ? at : none;
    }
    constexpr std::array<std::string_view, 5> ends = {";", "(", ")", "=", ">"};
    if (is_one_of(tokens[at], ends)) {
      return none;
    }
  }
  return none;
}

class Parameters {
 public:
  Parameters(const std::vector<Token>& tokens, const std::set<std::string>& aggregates)
      : tokens_(tokens), aggregates_(aggregates) {}

  // Reports the aggregates that the list at open takes by value.
  void check(std::size_t open, Findings& findings) const {
    std::size_t begin = open + 1;
    for (std::size_t i = begin; i <= tokens_[open].partner; ++i) {
      if (is(tokens_[i], "<")) {
        const std::size_t close = close_angle(tokens_, i);
        i = close == none ? i : close;
      } else if (is(tokens_[i], ",") || i == tokens_[open].partner) {
        check_one(begin, i, findings);
        begin = i + 1;
      } else if (tokens_[i].partner != none && tokens_[i].partner > i) {
        i = tokens_[i].partner;
      }
    }
  }

 private:
  void check_one(std::size_t from, std::size_t to, Findings& findings) const {
    std::size_t found = none;
    for (std::size_t i = from; i < to; ++i) {
      const Token& token = tokens_[i];
      if (is(token, "&") || is(token, "*")) {
        return;
      }
      if (token.kind == Kind::word && aggregates_.count(token.text) != 0) {
        found = i;
      }
      const std::size_t close = is(token, "<") ? close_angle(tokens_, i) : token.partner;
      if (close != none && close > i) {
        i = close;  // what stands inside is another type, or a value
      }
    }
    if (found != none) {
      findings.add("coroutine-aggregate", tokens_[found].line,
                   "a coroutine takes the aggregate " + tokens_[found].text +
                       " by value: give it a constructor of its own");
    }
  }

  const std::vector<Token>& tokens_;
  const std::set<std::string>& aggregates_;
};

}  // namespace

std::set<std::string> aggregates_of(const Source& source) {
  std::set<std::string> names;
  const std::vector<Token>& tokens = source.tokens;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const bool defines = is(tokens[i - 1], "struct") || is(tokens[i - 1], "class");
    const bool scoped = i > 1 && is(tokens[i - 2], "enum");
    if (!defines || scoped || tokens[i].kind != Kind::word) {
      continue;
    }
    const std::size_t body = body_of(tokens, i);
    if (body != none && Body(tokens, body, tokens[i].text).is_aggregate()) {
      names.insert(tokens[i].text);
    }
  }
  return names;
}

void check_aggregates(const Source& source, const Tree& tree, Findings& findings) {
  std::set<std::string> aggregates = aggregates_of(source);
  if (source.is_below("sdk/") || source.is_below("plugins/")) {
    aggregates.insert(tree.aggregates.begin(), tree.aggregates.end());
  }
  constexpr std::array<std::string_view, 2> returns = {"Task", "awaitable"};
  // What authors override is a coroutine in one of the two styles.
  const bool is_layer = source.is_below("sdk/include/sandforge/plugin/");
  const std::vector<Token>& tokens = source.tokens;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const bool may_be_one = is_one_of(tokens[i], returns) || (is_layer && is(tokens[i], "Result"));
    if (!may_be_one || !is(tokens[i + 1], "<")) {
      continue;
    }
    const std::size_t close = close_angle(tokens, i + 1);
    if (close == none) {
      continue;
    }
    std::size_t open = close + 1;
    while (open < tokens.size() && (tokens[open].kind == Kind::word || is(tokens[open], "::"))) {
      ++open;
    }
    const bool is_function = open > close + 1 && open < tokens.size() && is(tokens[open], "(") &&
                             tokens[open].partner != none;
    if (is_function) {
      Parameters(tokens, aggregates).check(open, findings);
    }
  }
}

}  // namespace sandforge::lint
