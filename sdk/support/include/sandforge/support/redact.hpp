// Takes secrets out of text before it is stored, logged, shown or returned.
//
// Two things become `***`:
// - Registered secrets, wherever they stand, and their usual disguises: base64 and base64url (at
//   every alignment, so inside an encoded `user:secret` too), percent and form encoding, JSON
//   escapes, shell quotes. Each line of 8 bytes or more of a secret of several lines counts as a
//   secret as well, because logs break at lines. A secret over 16 KiB is known as it is and by its
//   lines, in no disguise.
// - Shapes: the userinfo of URLs (`//user:pass@` becomes `//***@`), tokens of GitHub (ghp_, gho_,
//   ghu_, ghs_, ghr_, github_pat_), and the value of an Authorization header; its scheme stays.
//
// This is the last line of defence and no permission to log secrets: what is not registered and
// has no known shape passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace sandforge {

namespace redaction {
class Matcher;
class SecretFilter;
class ShapeFilter;
}  // namespace redaction

// The registered secrets. Every member function may be called from any thread.
class Redactor {
 public:
  // Shorter secrets, after blanks and newlines at both ends are cut off, are not registered:
  // replacing every "1" or "on" would ruin the text and tell the secret by what is missing.
  static constexpr std::size_t kShortest = 4;

  Redactor();
  ~Redactor();
  Redactor(const Redactor&) = delete;
  Redactor& operator=(const Redactor&) = delete;

  // Counts: a secret is taken out until `remove` was called as often as `add`. Both answer whether
  // they did something: false for a secret that is too short, or that is not registered.
  bool add(std::string_view secret);
  bool remove(std::string_view secret);

  // For secrets that come without end and live for a while, such as tokens: registers it, and takes
  // it back when kPassing others have come in this way.
  static constexpr std::size_t kPassing = 1024;
  void add_passing(std::string_view secret);

  std::string redact(std::string_view text) const;

 private:
  friend class RedactingStream;
  std::shared_ptr<const redaction::Matcher> matcher() const;

  mutable std::mutex mutex_;
  std::map<std::string, std::size_t, std::less<>> secrets_;
  std::deque<std::string> passing_;                            // oldest first
  mutable std::shared_ptr<const redaction::Matcher> matcher_;  // null: to be built
};

// Redacts a stream that arrives in chunks of any size; the result does not depend on where they
// are cut. Holds back only what can still become a match: less than the longest disguise of a
// secret, and up to 4 KiB from a `//` on while no blank or slash ends it. A secret that is added
// while the stream runs counts from what is held back on.
// One object belongs to one stream and is not thread-safe. The Redactor must outlive it.
class RedactingStream {
 public:
  explicit RedactingStream(const Redactor& redactor);
  ~RedactingStream();
  RedactingStream(RedactingStream&&) noexcept;
  RedactingStream& operator=(RedactingStream&&) noexcept;

  // Appends to `out` what is settled.
  void feed(std::string_view bytes, std::string& out);
  std::string feed(std::string_view bytes);

  // End of the stream: the rest. The object can be used again.
  void flush(std::string& out);
  std::string flush();

 private:
  const Redactor* redactor_;
  std::unique_ptr<redaction::SecretFilter> secrets_;
  std::unique_ptr<redaction::ShapeFilter> shapes_;
};

}  // namespace sandforge
