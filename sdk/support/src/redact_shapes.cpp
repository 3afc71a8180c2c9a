#include <algorithm>

#include "redact_filters.hpp"

namespace sandforge::redaction {
namespace {

// Enough for a signed token as user name; beyond it, text is no URL.
constexpr std::size_t kLongestAuthority = 4096;
// Shorter words after `ghp_` are names, not tokens (which have 36 bytes and more).
constexpr std::size_t kShortestToken = 10;
constexpr std::size_t kLongestSeparator = 16;
constexpr std::size_t kLongestGap = 32;
constexpr std::string_view kHeader = "authorization";
constexpr std::string_view kTokens[] = {"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"};
constexpr std::string_view kSchemes[] = {"bearer", "basic", "token", "negotiate"};
constexpr std::size_t kLongestScheme = 9;

bool one_of(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

bool is_blank_or_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= 0x20 || byte == 0x7F;
}

bool is_letter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// Dots and hyphens too: some tokens end in a signed part.
bool is_token(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || one_of(c, "_.-");
}

bool is_value(char c) {
  return !is_blank_or_control(c) && !one_of(c, "\"'`\\");
}

bool is_authority(char c) {
  return !is_blank_or_control(c) && !one_of(c, "/?#\\\"<>`");
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Length of the common start, letter case aside; `word` is in lower case.
std::size_t common_start(std::string_view text, std::string_view word) {
  std::size_t n = 0;
  while (n < text.size() && n < word.size() && lower(text[n]) == word[n])
    ++n;
  return n;
}

bool is_scheme(std::string_view word) {
  return std::any_of(std::begin(kSchemes), std::end(kSchemes), [&](std::string_view scheme) {
    return word.size() == scheme.size() && common_start(word, scheme) == scheme.size();
  });
}

// Bytes from `from` on that satisfy `test`, at most `most`.
template <class Test>
std::size_t run_length(std::string_view text, std::size_t from, std::size_t most, Test test) {
  std::size_t n = 0;
  while (n < most && from + n < text.size() && test(text[from + n]))
    ++n;
  return n;
}

}  // namespace

void ShapeFilter::feed(std::string_view bytes, std::string& out) {
  held_.append(bytes);
  run(out);
}

void ShapeFilter::flush(std::string& out) {
  at_end_ = true;
  run(out);
  *this = ShapeFilter();
}

void ShapeFilter::run(std::string& out) {
  const std::string_view text = held_;
  std::size_t known = authority_;
  authority_ = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    if (skip_ != Skip::nothing) {
      while (at < text.size() && skipped(text[at]))
        ++at;
      if (at == text.size()) break;
      skip_ = Skip::nothing;
    }
    const std::size_t place = std::min(text.find_first_of("/gaA", at), text.size());
    out.append(text, at, place - at);
    at = place;
    if (at == text.size()) break;
    const Finding finding = look(text.substr(at), at == 0 ? known : 0);
    if (finding.kind == Finding::Kind::more) break;
    if (finding.kind == Finding::Kind::none) {
      out.push_back(text[at++]);
      continue;
    }
    replace(finding, at, out);
    at += finding.length;
  }
  held_.erase(0, at);
}

void ShapeFilter::replace(const Finding& finding, std::size_t at, std::string& out) {
  out.append(held_, at, finding.kept);
  out.append(kMask);
  out.append(finding.tail);
  skip_ = finding.skip;
}

bool ShapeFilter::skipped(char c) const noexcept {
  return skip_ == Skip::token ? is_token(c) : is_value(c);
}

ShapeFilter::Finding ShapeFilter::short_of_text() const {
  Finding finding;
  finding.kind = at_end_ ? Finding::Kind::none : Finding::Kind::more;
  return finding;
}

ShapeFilter::Finding ShapeFilter::look(std::string_view text, std::size_t known) {
  if (text[0] == '/') return look_for_userinfo(text, known);
  if (text[0] == 'g') return look_for_token(text);
  return look_for_header(text);
}

// `//user:pass@`. The last @ of the authority counts, as in browsers: passwords contain it.
ShapeFilter::Finding ShapeFilter::look_for_userinfo(std::string_view text, std::size_t known) {
  if (text.size() == 1) return short_of_text();
  if (text[1] != '/') return {};
  const std::size_t length =
      known + run_length(text, 2 + known, kLongestAuthority - known, is_authority);
  const bool open = 2 + length == text.size() && length < kLongestAuthority;
  if (open && !at_end_) {
    authority_ = length;
    return short_of_text();
  }
  const std::size_t at_sign = text.substr(2, length).rfind('@');
  if (at_sign == std::string_view::npos || at_sign == 0) return {};
  Finding finding;
  finding.kind = Finding::Kind::hit;
  finding.length = 2 + at_sign + 1;
  finding.kept = 2;
  finding.tail = "@";
  return finding;
}

ShapeFilter::Finding ShapeFilter::look_for_token(std::string_view text) const {
  for (const std::string_view prefix : kTokens) {
    const std::string_view start = text.substr(0, prefix.size());
    if (start != prefix.substr(0, start.size())) continue;
    if (start.size() < prefix.size()) return short_of_text();
    const std::size_t length = run_length(text, prefix.size(), kShortestToken, is_token);
    if (length < kShortestToken) {
      return prefix.size() + length == text.size() ? short_of_text() : Finding();
    }
    Finding finding;
    finding.kind = Finding::Kind::hit;
    finding.length = prefix.size() + length;
    finding.skip = Skip::token;
    return finding;
  }
  return {};
}

// `Authorization: Bearer x`, `"authorization":"x"`, `http.extraheader=AUTHORIZATION: basic x`.
ShapeFilter::Finding ShapeFilter::look_for_header(std::string_view text) const {
  const std::size_t common = common_start(text, kHeader);
  if (common == text.size()) return short_of_text();
  if (common < kHeader.size()) return {};

  const std::size_t separator = run_length(text, kHeader.size(), kLongestSeparator + 1,
                                           [](char c) { return one_of(c, " \t\"'\\:="); });
  std::size_t value = kHeader.size() + separator;
  if (separator > kLongestSeparator) return {};
  if (value == text.size()) return short_of_text();
  if (text.substr(kHeader.size(), separator).find_first_of(":=") == std::string_view::npos) {
    return {};
  }

  const std::size_t word = run_length(text, value, kLongestScheme + 1, is_letter);
  if (word <= kLongestScheme && value + word == text.size() && !at_end_) return short_of_text();
  if (is_scheme(text.substr(value, word))) {
    const std::size_t gap =
        run_length(text, value + word, kLongestGap, [](char c) { return one_of(c, " \t"); });
    const std::size_t after = value + word + gap;
    if (after == text.size() && !at_end_) return short_of_text();
    if (gap != 0 && after < text.size() && is_value(text[after])) value = after;
  }
  if (!is_value(text[value])) return {};
  Finding finding;
  finding.kind = Finding::Kind::hit;
  finding.length = value;
  finding.kept = value;
  finding.skip = Skip::value;
  return finding;
}

}  // namespace sandforge::redaction
