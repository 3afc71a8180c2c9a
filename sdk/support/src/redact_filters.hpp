// The two passes of redaction over a stream: registered secrets, then shapes. Not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "redact_matcher.hpp"

namespace sandforge::redaction {

inline constexpr std::string_view kMask = "***";

// Replaces each run of overlapping matches by one mask. So of two secrets that share bytes, nothing
// of either is left.
class SecretFilter {
 public:
  // A new matcher counts for what is held back, too.
  void use(std::shared_ptr<const Matcher> matcher);
  void feed(std::string_view bytes, std::string& out);
  void flush(std::string& out);

 private:
  struct Range {
    std::size_t begin;
    std::size_t end;
    bool masked;  // the mask was written already, the rest is only to be left out
  };

  void step(std::size_t end);
  void add(Range range);
  void settle(std::size_t until, std::string& out);

  std::shared_ptr<const Matcher> matcher_;
  Matcher::State state_ = Matcher::kStart;
  std::string held_;
  std::deque<Range> ranges_;  // within held_, ascending and disjoint
};

// Replaces what looks like a credential.
class ShapeFilter {
 public:
  void feed(std::string_view bytes, std::string& out);
  void flush(std::string& out);

 private:
  enum class Skip : std::uint8_t { nothing, token, value };
  // What stands at a place: nothing, not enough bytes to tell, or a shape, of which `length` bytes
  // are to be replaced, with `kept` of them before the mask, `tail` behind it, and more to leave
  // out.
  struct Finding {
    enum class Kind : std::uint8_t { none, more, hit } kind = Kind::none;
    std::size_t length = 0;
    std::size_t kept = 0;
    std::string_view tail = {};
    Skip skip = Skip::nothing;
  };

  void run(std::string& out);
  void replace(const Finding& finding, std::size_t at, std::string& out);
  bool skipped(char c) const noexcept;
  Finding look(std::string_view text, std::size_t known);
  Finding look_for_userinfo(std::string_view text, std::size_t known);
  Finding look_for_token(std::string_view text) const;
  Finding look_for_header(std::string_view text) const;
  // The text ended: at the end of the stream that is an answer, before it is a question.
  Finding short_of_text() const;

  std::string held_;
  std::size_t authority_ = 0;  // bytes after the `//` at the start of held_ known to belong to it
  Skip skip_ = Skip::nothing;
  bool at_end_ = false;
};

}  // namespace sandforge::redaction
