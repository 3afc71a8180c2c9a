#include "sandforge/support/utf8.hpp"

#include <cstring>

namespace sandforge {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_ascii(char c) noexcept {
  return static_cast<unsigned char>(c) < 0x80;
}

std::size_t ascii_run(std::string_view bytes, std::size_t from) noexcept {
  while (from < bytes.size() && is_ascii(bytes[from]))
    ++from;
  return from;
}

}  // namespace

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

bool is_valid_utf8(std::string_view bytes) noexcept {
  Utf8Decoder decoder;
  std::size_t i = 0;
  while (i < bytes.size()) {
    if (decoder.size_ == 0) {
      i = ascii_run(bytes, i);
      if (i == bytes.size()) return true;
    }
    const auto result = decoder.step(static_cast<unsigned char>(bytes[i]));
    if (result != Utf8Decoder::Step::more && result != Utf8Decoder::Step::done) return false;
    ++i;
  }
  return decoder.size_ == 0;
}

std::string to_valid_utf8(std::string_view bytes) {
  Utf8Decoder decoder;
  std::string out = decoder.decode(bytes);
  decoder.flush(out);
  return out;
}

}  // namespace sandforge
