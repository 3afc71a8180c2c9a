#include "lint/lexer.hpp"

#include <algorithm>
#include <cctype>

namespace sandforge::lint {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      step();
    }
    match_brackets();
    return std::move(tokens_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '\n') {
      ++line_;
      ++at_;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == '\\') {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      skip_to(text_.find('\n', at_));
    } else if (text_.substr(at_, 2) == "/*") {
      const std::size_t end = text_.find("*/", at_ + 2);
      skip_to(end == std::string_view::npos ? end : end + 2);
    } else if (c == '#') {
      directive();
    } else if (c == '"') {
      quoted(Kind::string);
    } else if (c == '\'') {
      quoted(Kind::character);
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      number();
    } else if (is_word(c)) {
      word();
    } else {
      mark();
    }
  }

  // Moves on, counting lines.
  void skip_to(std::size_t end) {
    end = std::min(end, text_.size());
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }

  void push(Kind kind, std::string_view text) {
    tokens_.push_back({kind, std::string(text), line_});
  }

  // Only #include is one token; the words of other directives are read like code.
  void directive() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    const std::size_t name = line.find("include");
    const bool blank = name != std::string_view::npos &&
                       line.substr(1, name - 1).find_first_not_of(" \t") == std::string_view::npos;
    const std::size_t open = blank ? line.find_first_of("<\"", name) : std::string_view::npos;
    if (open == std::string_view::npos) {
      ++at_;
      return;
    }
    const std::size_t close = line.find_first_of(">\"", open + 1);
    push(Kind::include,
         line.substr(open, close == std::string_view::npos ? close : close + 1 - open));
    at_ = end;
  }

  void quoted(Kind kind) {
    const char quote = text_[at_];
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    end = std::min(end, text_.size());
    push(kind, text_.substr(at_ + 1, end - at_ - 1));
    skip_to(end < text_.size() && text_[end] == '\n' ? end : end + 1);
  }

  void number() {
    std::size_t end = at_;
    while (end < text_.size() && (is_word(text_[end]) || text_[end] == '\'' || text_[end] == '.')) {
      ++end;
    }
    push(Kind::number, text_.substr(at_, end - at_));
    at_ = end;
  }

  void word() {
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) {
      ++end;
    }
    const std::string_view found = text_.substr(at_, end - at_);
    if (end < text_.size() && text_[end] == '"') {
      at_ = end;  // an encoding prefix is no token of its own
      if (found.back() == 'R') {
        raw_string();
      } else {
        quoted(Kind::string);
      }
      return;
    }
    push(Kind::word, found);
    at_ = end;
  }

  void raw_string() {
    const std::size_t open = std::min(text_.find('(', at_), text_.size());
    const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const std::size_t end = text_.find(close, open);
    push(Kind::string, text_.substr(std::min(open + 1, text_.size()),
                                    end == std::string_view::npos ? end : end - open - 1));
    skip_to(end == std::string_view::npos ? end : end + close.size());
  }

  void mark() {
    const std::string_view two = text_.substr(at_, 2);
    const std::size_t length = two == "::" || two == "->" ? 2 : 1;
    push(Kind::mark, text_.substr(at_, length));
    at_ += length;
  }

  void match_brackets() {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind != Kind::mark) {
        continue;
      }
      const char c = tokens_[i].text[0];
      if (c == '(' || c == '[' || c == '{') {
        open.push_back(i);
      } else if ((c == ')' || c == ']' || c == '}') && !open.empty()) {
        tokens_[i].partner = open.back();
        tokens_[open.back()].partner = i;
        open.pop_back();
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text) {
  return Lexer(text).run();
}

}  // namespace sandforge::lint
