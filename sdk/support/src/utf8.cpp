#include "sandforge/support/utf8.hpp"

#include <cstring>

namespace sandforge {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_ascii(char c) noexcept {
  return static_cast<unsigned char>(c) < 0x80;
}

// By words: nearly all output is ASCII, and every byte of it passes here.
std::size_t ascii_run(std::string_view bytes, std::size_t from) noexcept {
  constexpr std::uint64_t not_ascii = 0x8080808080808080U;
  for (std::uint64_t word = 0; bytes.size() - from >= sizeof word; from += sizeof word) {
    std::memcpy(&word, bytes.data() + from, sizeof word);
    if ((word & not_ascii) != 0) break;
  }
  while (from < bytes.size() && is_ascii(bytes[from]))
    ++from;
  return from;
}

// The code point of one whole sequence.
std::uint32_t code_point(std::string_view sequence) noexcept {
  const auto first = static_cast<unsigned char>(sequence.front());
  std::uint32_t out = first;
  if (sequence.size() > 1) out &= 0x7FU >> sequence.size();
  for (const char c : sequence.substr(1))
    out = out << 6U | (static_cast<unsigned char>(c) & 0x3FU);
  return out;
}

std::size_t sequence_length(char first) noexcept {
  const auto byte = static_cast<unsigned char>(first);
  if (byte < 0x80) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

bool steers(std::uint32_t point) noexcept {
  return point < 0x20 || (point >= 0x7F && point < 0xA0) || (point >= 0x200E && point <= 0x200F) ||
         (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
}

void append_escape(std::uint32_t point, std::string& out) {
  constexpr char digits[] = "0123456789abcdef";
  if (point == '\n' || point == '\r' || point == '\t') {
    out += {'\\', point == '\n' ? 'n' : point == '\r' ? 'r' : 't'};
    return;
  }
  if (point < 0x80) {
    out += {'\\', 'x', digits[point >> 4U], digits[point & 15U]};
    return;
  }
  out += "\\u{";
  for (int shift = point > 0xFFU ? 12 : 4; shift >= 0; shift -= 4)
    out += digits[point >> static_cast<unsigned>(shift) & 15U];
  out += '}';
}

}  // namespace

std::string escape_controls(std::string_view text, std::string_view keep) {
  const std::string valid = to_valid_utf8(text);
  std::string out;
  out.reserve(valid.size());
  for (std::size_t i = 0; i < valid.size();) {
    const std::string_view sequence(valid.data() + i, sequence_length(valid[i]));
    const std::uint32_t point = code_point(sequence);
    i += sequence.size();
    if (!steers(point) || (point < 0x80 && keep.find(sequence) != std::string_view::npos)) {
      out += sequence;
    } else {
      append_escape(point, out);
    }
  }
  return out;
}

Utf8Decoder::Step Utf8Decoder::step(unsigned char byte) noexcept {
  if (size_ == 0) {
    lower_ = 0x80;
    upper_ = 0xBF;
    if (byte < 0x80) {
      length_ = 1;
    } else if (byte >= 0xC2 && byte <= 0xDF) {
      length_ = 2;
    } else if (byte >= 0xE0 && byte <= 0xEF) {
      length_ = 3;
      if (byte == 0xE0) lower_ = 0xA0;  // overlong below
      if (byte == 0xED) upper_ = 0x9F;  // surrogates above
    } else if (byte >= 0xF0 && byte <= 0xF4) {
      length_ = 4;
      if (byte == 0xF0) lower_ = 0x90;  // overlong below
      if (byte == 0xF4) upper_ = 0x8F;  // beyond U+10FFFF above
    } else {
      return Step::bad;
    }
  } else {
    if (byte < lower_ || byte > upper_) {
      size_ = 0;
      return Step::bad_again;
    }
    lower_ = 0x80;
    upper_ = 0xBF;
  }
  held_[size_++] = static_cast<char>(byte);
  if (size_ < length_) return Step::more;
  size_ = 0;
  return Step::done;
}

template <class Sink>
void Utf8Decoder::run(std::string_view bytes, Sink sink) {
  std::size_t i = 0;
  while (i < bytes.size()) {
    if (size_ == 0) {
      const std::size_t end = ascii_run(bytes, i);
      sink(bytes.substr(i, end - i));
      i = end;
      if (i == bytes.size()) return;
    }
    const Step result = step(static_cast<unsigned char>(bytes[i]));
    if (result != Step::bad_again) ++i;
    if (result == Step::done) {
      sink(std::string_view(held_, length_));
    } else if (result != Step::more) {
      sink(kReplacement);
    }
  }
}

void Utf8Decoder::decode(std::string_view bytes, std::string& out) {
  run(bytes, [&](std::string_view text) { out.append(text); });
}

std::size_t Utf8Decoder::count(std::string_view bytes) noexcept {
  std::size_t sum = 0;
  run(bytes, [&](std::string_view text) { sum += text.size(); });
  return sum;
}

std::size_t Utf8Decoder::count_flush() noexcept {
  const bool unfinished = size_ != 0;
  size_ = 0;
  return unfinished ? kReplacement.size() : 0;
}

std::string Utf8Decoder::decode(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  decode(bytes, out);
  return out;
}

void Utf8Decoder::flush(std::string& out) {
  if (count_flush() != 0) out.append(kReplacement);
}

std::string Utf8Decoder::flush() {
  std::string out;
  flush(out);
  return out;
}

bool Utf8Check::take(std::string_view bytes) noexcept {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (decoder_.size_ == 0) {
      i = ascii_run(bytes, i);
      if (i == bytes.size()) return true;
    }
    const auto result = decoder_.step(static_cast<unsigned char>(bytes[i]));
    if (result != Utf8Decoder::Step::more && result != Utf8Decoder::Step::done) return false;
  }
  return true;
}

bool is_valid_utf8(std::string_view bytes) noexcept {
  Utf8Check check;
  return check.take(bytes) && check.whole();
}

std::string to_valid_utf8(std::string_view bytes) {
  Utf8Decoder decoder;
  std::string out = decoder.decode(bytes);
  decoder.flush(out);
  return out;
}

}  // namespace sandforge
