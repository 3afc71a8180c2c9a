#include "check.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace sandforge::conformance {

Findings& findings() {
  static Findings all;
  return all;
}

void Findings::add(const std::string& what) {
  constexpr std::size_t kShown = 8;
  const std::lock_guard lock(mutex_);
  if (list_.size() >= kShown) {
    ++more_;
    return;
  }
  std::string line = what;
  for (const auto& note : notes_)
    line += "\n    with " + note;
  list_.push_back(std::move(line));
}

bool Findings::empty() const {
  const std::lock_guard lock(mutex_);
  return list_.empty();
}

std::string Findings::text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& line : list_)
    out += (out.empty() ? "" : "\n") + line;
  if (more_ > 0) out += "\nand " + std::to_string(more_) + " more";
  return out;
}

void Findings::push_note(std::string note) {
  const std::lock_guard lock(mutex_);
  notes_.push_back(std::move(note));
}

void Findings::pop_note() {
  const std::lock_guard lock(mutex_);
  notes_.pop_back();
}

std::string show_text(std::string_view text) {
  constexpr std::size_t kShown = 200;
  std::string out = "\"";
  for (const char c : text.substr(0, kShown)) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f) {
      out += c;
    } else {
      std::array<char, 5> hex{};
      std::snprintf(hex.data(), hex.size(), "\\x%02x",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += hex.data();
    }
  }
  out += '"';
  if (text.size() > kShown) out += " (" + std::to_string(text.size()) + " bytes)";
  return out;
}

namespace {

// What stands before the sign, but not inside of brackets.
std::string_view left_of(std::string_view expression, std::string_view sign) {
  int depth = 0;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0 && c == ' ' &&
        expression.substr(i + 1, sign.size() + 1) == std::string(sign) + " ")
      return expression.substr(0, i);
  }
  return expression;
}

// "to_string(build.status)" and "(build.ready)": the inner part, where it is one of its own.
std::string_view without_wrapping(std::string_view text) {
  for (const std::string_view head : {"to_string(", "("}) {
    if (text.substr(0, head.size()) != head || text.back() != ')') continue;
    const auto inner = text.substr(head.size(), text.size() - head.size() - 1);
    int depth = 0;
    bool whole = true;
    for (const char c : inner) {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      whole = whole && depth >= 0;
    }
    if (whole) return without_wrapping(inner);
  }
  return text;
}

struct Sign {
  std::string_view sign, holds, fails;
};
constexpr std::array<Sign, 6> kSigns = {{{"==", "must be ", "must be something else"},
                                         {"!=", "must be something else", "must be "},
                                         {"<", "must be less than ", "must be at least "},
                                         {"<=", "must be at most ", "must be more than "},
                                         {">", "must be more than ", "must be at most "},
                                         {">=", "must be at least ", "must be less than "}}};

}  // namespace

std::string words_for(const Judged& judged, std::string_view expression, bool expected) {
  for (const Sign& one : kSigns) {
    if (one.sign != judged.sign) continue;
    const auto must = expected ? one.holds : one.fails;
    // Of two that are the same, one is enough.
    return std::string(without_wrapping(left_of(expression, one.sign))) + " is " + judged.left +
           ", and " + std::string(must) + (must.back() == ' ' ? judged.right : "");
  }
  return std::string(expected ? "this must hold, and does not: "
                              : "this must not hold, and does: ") +
         std::string(without_wrapping(expression));
}

bool record(const Judged& judged, const char* expression, bool expected) {
  if (judged.good == expected) return true;
  findings().add(words_for(judged, expression, expected));
  return false;
}

}  // namespace sandforge::conformance
