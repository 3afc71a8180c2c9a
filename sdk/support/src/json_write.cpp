#include <charconv>
#include <cmath>

#include "json_members.hpp"
#include "sandforge/support/json.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge::json {
namespace {

enum class Style { compact, pretty, canonical };

class Writer {
 public:
  Writer(Style style, std::string& out) : style_(style), out_(out) {}

  void value(const Value& v) {
    switch (v.kind()) {
      case Kind::null:
        out_ += "null";
        break;
      case Kind::boolean:
        out_ += v.as_bool() ? "true" : "false";
        break;
      case Kind::integer:
        integer(v.as_integer());
        break;
      case Kind::number:
        number(v.as_number());
        break;
      case Kind::string:
        string(v.as_string());
        break;
      case Kind::array:
        array(v.as_array());
        break;
      case Kind::object:
        object(v.as_object());
        break;
    }
  }

 private:
  void integer(std::int64_t i) {
    char buffer[24];
    const auto end = std::to_chars(buffer, buffer + sizeof(buffer), i).ptr;
    out_.append(buffer, end);
  }

  void number(double d) {
    if (!std::isfinite(d)) {
      out_ += "null";
      return;
    }
    if (style_ == Style::canonical) {
      if (const auto exact = exact_integer(d)) return integer(*exact);
    }
    char buffer[32];
    const auto end = std::to_chars(buffer, buffer + sizeof(buffer), d).ptr;
    const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
    out_ += text;
    if (text.find_first_of(".e") == std::string_view::npos) out_ += ".0";
  }

  void string(std::string_view s) {
    out_.push_back('"');
    if (is_valid_utf8(s)) {
      escaped(s);
    } else {
      escaped(to_valid_utf8(s));
    }
    out_.push_back('"');
  }

  void escaped(std::string_view s) {
    std::size_t done = 0;
    for (std::size_t i = 0; i < s.size(); ++i) {
      const auto c = static_cast<unsigned char>(s[i]);
      if (c >= 0x20 && c != '"' && c != '\\') continue;
      out_.append(s, done, i - done);
      done = i + 1;
      escape(c);
    }
    out_.append(s, done, s.size() - done);
  }

  void escape(unsigned char c) {
    static constexpr char kHex[] = "0123456789abcdef";
    out_.push_back('\\');
    switch (c) {
      case '"':
      case '\\':
        out_.push_back(static_cast<char>(c));
        break;
      case '\b':
        out_.push_back('b');
        break;
      case '\f':
        out_.push_back('f');
        break;
      case '\n':
        out_.push_back('n');
        break;
      case '\r':
        out_.push_back('r');
        break;
      case '\t':
        out_.push_back('t');
        break;
      default:
        out_ += "u00";
        out_.push_back(kHex[c >> 4]);
        out_.push_back(kHex[c & 15]);
    }
  }

  void array(const Array& items) {
    open('[');
    for (const Value& item : items) {
      next();
      value(item);
    }
    close(']', items.empty());
  }

  void object(const Object& members) {
    open('{');
    if (style_ == Style::canonical) {
      for (const Member* m : sorted_members(members))
        member(*m);
    } else {
      for (const Member& m : members)
        member(m);
    }
    close('}', members.empty());
  }

  void member(const Member& m) {
    next();
    string(m.first);
    out_ += style_ == Style::pretty ? ": " : ":";
    value(m.second);
  }

  void open(char bracket) {
    out_.push_back(bracket);
    first_ = true;
    ++depth_;
  }

  void next() {
    if (!first_) out_.push_back(',');
    first_ = false;
    indent();
  }

  void close(char bracket, bool empty) {
    --depth_;
    if (!empty) indent();
    out_.push_back(bracket);
    first_ = false;
  }

  void indent() {
    if (style_ != Style::pretty) return;
    out_.push_back('\n');
    out_.append(2 * depth_, ' ');
  }

  Style style_;
  std::string& out_;
  std::size_t depth_ = 0;
  bool first_ = true;
};

std::string write_as(Style style, const Value& value) {
  std::string out;
  Writer(style, out).value(value);
  return out;
}

}  // namespace

std::string write(const Value& value) {
  return write_as(Style::compact, value);
}

std::string write_pretty(const Value& value) {
  std::string out = write_as(Style::pretty, value);
  out.push_back('\n');
  return out;
}

std::string write_canonical(const Value& value) {
  return write_as(Style::canonical, value);
}

}  // namespace sandforge::json
