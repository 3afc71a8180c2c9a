#include <algorithm>

#include "sandforge/yaml.hpp"
#include "text.hpp"

namespace sandforge {
namespace {

constexpr std::size_t shown_bytes = 100;

std::string_view line_of(std::string_view text, std::size_t number) {
  for (std::size_t line = 1; line < number; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

bool inside_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

struct Excerpt {
  std::string line;
  std::string before_caret;  // as wide as the part of the line before the column
};

// Control characters would move the caret, or the terminal's.
char harmless(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < ' ' || byte == 0x7F ? ' ' : c;
}

Excerpt excerpt(std::string_view line, std::size_t column, bool redact) {
  std::size_t at = std::min(column - 1, line.size());
  Excerpt out;
  if (at > shown_bytes * 3 / 5) {
    std::size_t cut = at - shown_bytes / 2;
    while (cut < at && inside_character(line[cut]))
      ++cut;
    line.remove_prefix(cut);
    at -= cut;
    out.line = "…";
    out.before_caret = " ";
  }
  std::size_t end = redact ? at : std::min(line.size(), shown_bytes);
  while (end < line.size() && inside_character(line[end]))
    ++end;
  for (std::size_t i = 0; i < end; ++i) {
    out.line += harmless(line[i]);
    if (i < at && !inside_character(line[i])) out.before_caret += ' ';
  }
  if (redact || end < line.size()) out.line += "…";
  return out;
}

}  // namespace

std::string format_diagnostic(std::string_view file, std::string_view text, SourcePosition at,
                              std::string_view message, bool redact) {
  std::string out(file);
  if (at) out += ':' + std::to_string(at.line) + ':' + std::to_string(at.column);
  out += ": ";
  out += message;
  out += '\n';
  if (!at) return out;
  const std::string_view line = line_of(yaml_detail::without_byte_order_mark(text), at.line);
  if (line.empty()) return out;
  const Excerpt shown = excerpt(line, at.column, redact);
  return out + "  " + shown.line + "\n  " + shown.before_caret + "^\n";
}

std::string format_diagnostic(std::string_view file, std::string_view text, const SourceMap& source,
                              const Issue& issue, bool redact) {
  const bool at_key = issue.keyword == "additionalProperties" || issue.keyword == "propertyNames";
  const SourcePosition at = at_key ? source.key(issue.pointer) : source.value(issue.pointer);
  return format_diagnostic(file, text, at, format_issue(issue), redact);
}

}  // namespace sandforge
