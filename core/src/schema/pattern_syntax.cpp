#include <array>
#include <charconv>
#include <cstdint>

#include "pattern.hpp"

namespace sandforge::schema_detail {
namespace {

// White space and line ends of ECMA 262, which RE2's \s does not cover.
constexpr std::string_view space_members =
    R"(\t\n\v\f\r\x{20}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff})";
constexpr std::string_view any_but_line_end = R"([^\n\r\x{2028}\x{2029}])";

class Translator {
 public:
  Translator(std::string_view in, std::string& out, std::string& error)
      : in_(in), out_(out), error_(error) {}

  bool run() {
    while (at_ < in_.size()) {
      if (!step()) return false;
    }
    if (in_class_) return fail("has an unclosed [");
    return true;
  }

 private:
  bool fail(std::string reason) {
    error_ = std::move(reason);
    return false;
  }

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0';
  }

  bool step() {
    const char c = in_[at_];
    if (c == '\0') return fail("contains a NUL");
    if (c == '\\') return escape();
    if (in_class_) return class_member(c);
    ++at_;
    switch (c) {
      case '.':
        out_ += any_but_line_end;
        return true;
      case '[':
        return open_class();
      case '(':
        return group();
      default:
        out_ += c;
        return true;
    }
  }

  bool open_class() {
    in_class_ = true;
    out_ += '[';
    if (peek() == '^') {
      out_ += '^';
      ++at_;
    }
    if (peek() == ']') return fail("has an empty []");
    return true;
  }

  bool class_member(char c) {
    ++at_;
    if (c == ']') in_class_ = false;
    if (c == '[') {
      out_ += R"(\[)";  // else RE2 takes [: for a POSIX class
      return true;
    }
    out_ += c;
    return true;
  }

  bool group() {
    out_ += '(';
    if (peek() != '?') return true;
    if (peek(1) == ':') {
      out_ += "?:";
      at_ += 2;
      return true;
    }
    if (peek(1) == '=' || peek(1) == '!') return fail("uses look-ahead, which is not supported");
    if (peek(1) == '<' && (peek(2) == '=' || peek(2) == '!')) {
      return fail("uses look-behind, which is not supported");
    }
    return fail("uses a named group or flags, which are not supported");
  }

  bool escape() {
    const char c = peek(1);
    at_ += 2;
    switch (c) {
      case '\0':
        return fail("ends in a backslash");
      case 'd':
      case 'D':
      case 'w':
      case 'W':
      case 't':
      case 'n':
      case 'v':
      case 'f':
      case 'r':
        out_ += '\\';
        out_ += c;
        return true;
      case 's':
        return space();
      case 'S':
        if (in_class_) return fail(R"(uses \S inside [], which is not supported)");
        out_ += "[^";
        out_ += space_members;
        out_ += ']';
        return true;
      case 'b':
      case 'B':
        return boundary(c);
      case 'c':
        return control();
      case 'u':
        return unicode();
      case 'x':
        return code_point(2);
      case 'p':
      case 'P':
        return property(c);
      case '0':
        if (peek() >= '0' && peek() <= '9') return fail("uses an octal escape");
        out_ += R"(\x{0})";
        return true;
      default:
        return identity(c);
    }
  }

  bool space() {
    if (!in_class_) out_ += '[';
    out_ += space_members;
    if (!in_class_) out_ += ']';
    return true;
  }

  bool boundary(char c) {
    if (in_class_) {
      if (c == 'B') return fail(R"(uses \B inside [])");
      out_ += R"(\x{8})";
      return true;
    }
    out_ += '\\';
    out_ += c;
    return true;
  }

  bool control() {
    const char letter = peek();
    const bool ok = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (!ok) return fail(R"(uses \c without a letter)");
    ++at_;
    append_code_point(static_cast<std::uint32_t>(letter) % 32);
    return true;
  }

  bool unicode() {
    std::uint32_t code = 0;
    if (peek() == '{') {
      const auto close = in_.find('}', at_);
      if (close == std::string_view::npos || !hex(in_.substr(at_ + 1, close - at_ - 1), code)) {
        return fail(R"(has a malformed \u escape)");
      }
      at_ = close + 1;
    } else {
      if (!hex(in_.substr(at_, 4), code) || in_.size() - at_ < 4) {
        return fail(R"(has a malformed \u escape)");
      }
      at_ += 4;
      std::uint32_t low = 0;
      if (code >= 0xD800 && code < 0xDC00 && in_.substr(at_, 2) == R"(\u)" &&
          hex(in_.substr(at_ + 2, 4), low) && low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
        at_ += 6;
      }
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      return fail(R"(has a \u escape that is no character)");
    }
    append_code_point(code);
    return true;
  }

  bool code_point(std::size_t digits) {
    std::uint32_t code = 0;
    if (in_.size() - at_ < digits || !hex(in_.substr(at_, digits), code)) {
      return fail(R"(has a malformed \x escape)");
    }
    at_ += digits;
    append_code_point(code);
    return true;
  }

  // \p{L} and \p{Lu} and script names mean the same in both; long category names and properties
  // such as \p{Letter} are errors in RE2 and are reported by it.
  bool property(char c) {
    const auto close = in_.find('}', at_);
    if (peek() != '{' || close == std::string_view::npos || peek(1) == '^') {
      return fail(R"(has a malformed \p{…})");
    }
    out_ += '\\';
    out_ += c;
    out_ += in_.substr(at_, close + 1 - at_);
    at_ = close + 1;
    return true;
  }

  // Punctuation stands for itself in both; a letter would be something else in RE2.
  bool identity(char c) {
    if (c >= '1' && c <= '9') return fail("uses a back-reference, which is not supported");
    const bool punctuation =
        c > ' ' && c < 0x7F && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z');
    if (!punctuation) return fail(std::string("has an escape that is not supported: \\") + c);
    out_ += '\\';
    out_ += c;
    return true;
  }

  static bool hex(std::string_view digits, std::uint32_t& code) {
    if (digits.empty() || digits.size() > 6) return false;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    return result.ec == std::errc{} && result.ptr == digits.data() + digits.size();
  }

  void append_code_point(std::uint32_t code) {
    std::array<char, 12> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), code, 16).ptr;
    out_ += R"(\x{)";
    out_.append(text.data(), end);
    out_ += '}';
  }

  std::string_view in_;
  std::string& out_;
  std::string& error_;
  std::size_t at_ = 0;
  bool in_class_ = false;
};

}  // namespace

bool translate_pattern(std::string_view expression, std::string& translated, std::string& error) {
  translated.clear();
  return Translator(expression, translated, error).run();
}

}  // namespace sandforge::schema_detail
