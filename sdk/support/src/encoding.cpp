#include "sandforge/support/encoding.hpp"

#include <cstdint>

namespace sandforge {
namespace {

constexpr char kStandard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char kUrl[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::uint32_t byte_at(std::string_view bytes, std::size_t i) {
  return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
}

std::string encode64(std::string_view bytes, const char* alphabet, bool pad) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t group =
        (byte_at(bytes, i) << 16) | (byte_at(bytes, i + 1) << 8) | byte_at(bytes, i + 2);
    const std::size_t data = bytes.size() - i >= 3 ? 4 : bytes.size() - i + 1;
    for (std::size_t k = 0; k < 4; ++k) {
      if (k < data) {
        out.push_back(alphabet[(group >> (18 - 6 * k)) & 63]);
      } else if (pad) {
        out.push_back('=');
      }
    }
  }
  return out;
}

// 0 to 63, or -1.
int digit64(char c, bool url) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == (url ? '-' : '+')) return 62;
  if (c == (url ? '_' : '/')) return 63;
  return -1;
}

// `text` without padding.
std::optional<std::string> decode64(std::string_view text, bool url) {
  if (text.size() % 4 == 1) return {};
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t group = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const int digit = digit64(c, url);
    if (digit < 0) return {};
    group = (group << 6) | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out.push_back(static_cast<char>((group >> bits) & 0xFF));
      group &= (1U << bits) - 1;
    }
  }
  if (group != 0) return {};
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The byte that two digits at `i` write, or -1.
int hex_byte(std::string_view text, std::size_t i) {
  if (i + 1 >= text.size()) return -1;
  const int high = hex_digit(text[i]);
  const int low = hex_digit(text[i + 1]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string encode_percent(std::string_view bytes, char kept) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    if (is_unreserved(c) || (kept != '\0' && c == kept)) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.push_back('%');
      out.push_back(kDigits[byte >> 4]);
      out.push_back(kDigits[byte & 15]);
    }
  }
  return out;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  return encode64(bytes, kStandard, true);
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  for (int i = 0; i < 2 && !text.empty() && text.back() == '='; ++i)
    text.remove_suffix(1);
  return decode64(text, false);
}

std::string base64url_encode(std::string_view bytes) {
  return encode64(bytes, kUrl, false);
}

std::optional<std::string> base64url_decode(std::string_view text) {
  return decode64(text, true);
}

std::string hex_encode(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

std::optional<std::string> hex_decode(std::string_view text) {
  if (text.size() % 2 != 0) return {};
  std::string out;
  out.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int byte = hex_byte(text, i);
    if (byte < 0) return {};
    out.push_back(static_cast<char>(byte));
  }
  return out;
}

std::string percent_encode(std::string_view bytes) {
  return encode_percent(bytes, '\0');
}

std::string percent_encode_path(std::string_view bytes) {
  return encode_percent(bytes, '/');
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    const int byte = hex_byte(text, i + 1);
    if (byte < 0) return {};
    out.push_back(static_cast<char>(byte));
    i += 2;
  }
  return out;
}

}  // namespace sandforge
