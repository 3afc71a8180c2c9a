#include "text.hpp"

#include <algorithm>
#include <array>

#include "sandforge/support/utf8.hpp"

namespace sandforge::yaml_detail {
namespace {

std::string hex_byte(unsigned char byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {'0', 'x', digits[byte >> 4U], digits[byte & 15U]};
}

// The start of the line that cannot be UTF-8: good enough to find it.
std::size_t first_bad_byte(std::string_view text) {
  std::size_t line = 0;
  while (true) {
    const std::size_t end = text.find('\n', line);
    const std::string_view current =
        text.substr(line, end == std::string_view::npos ? end : end - line);
    if (!is_valid_utf8(current)) {
      std::size_t good = 0;
      for (std::size_t i = 1; i <= current.size(); ++i) {
        if (is_valid_utf8(current.substr(good, i - good))) good = i;
        if (i - good > 4) break;
      }
      return line + good;
    }
    if (end == std::string_view::npos) return 0;
    line = end + 1;
  }
}

const char* reason_against(std::string_view text, std::size_t i) {
  const auto byte = static_cast<unsigned char>(text[i]);
  if (byte == 0) return "a NUL byte is not allowed";
  if (byte == '\r') {
    const bool pair = i + 1 < text.size() && text[i + 1] == '\n';
    return pair ? nullptr : "a carriage return without a line feed is not allowed";
  }
  if (byte == '\t' || byte == '\n') return nullptr;
  return byte < ' ' || byte == 0x7F ? "a control character is not allowed" : nullptr;
}

// By its first byte; 0 for a byte that begins none.
std::size_t sequence_length(unsigned char first) noexcept {
  if (first < 0x80) return 1;
  if (first < 0xC0) return 0;
  if (first < 0xE0) return 2;
  return first < 0xF0 ? 3 : 4;
}

}  // namespace

std::string with_whole_escapes(const std::string& scalar) {
  if (is_valid_utf8(scalar)) return scalar;
  std::string out;
  for (std::size_t i = 0; i < scalar.size();) {
    const std::size_t length = sequence_length(static_cast<unsigned char>(scalar[i]));
    if (length == 0) out += '\xC2';
    out.append(scalar, i, std::max<std::size_t>(length, 1));
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string_view without_byte_order_mark(std::string_view text) noexcept {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.substr(0, mark.size()) == mark ? text.substr(mark.size()) : text;
}

SourcePosition position_of(std::string_view text, std::size_t offset) noexcept {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t last = before.rfind('\n');
  const std::size_t start = last == std::string_view::npos ? 0 : last + 1;
  return {static_cast<std::size_t>(lines) + 1, before.size() - start + 1};
}

YamlError check_text(std::string_view text, const YamlLimits& limits) {
  if (text.size() > limits.bytes) {
    return {"the document is larger than " + std::to_string(limits.bytes) + " bytes", {1, 1}};
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char* reason = reason_against(text, i);
    if (reason == nullptr) continue;
    const std::string which = " (" + hex_byte(static_cast<unsigned char>(text[i])) + ")";
    return {reason + which, position_of(text, i)};
  }
  if (!is_valid_utf8(text)) {
    return {"the document is not UTF-8", position_of(text, first_bad_byte(text))};
  }
  return {};
}

}  // namespace sandforge::yaml_detail
