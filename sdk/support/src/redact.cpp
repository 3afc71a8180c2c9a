#include "sandforge/support/redact.hpp"

#include <algorithm>

#include "redact_disguises.hpp"
#include "redact_filters.hpp"

namespace sandforge {

Redactor::Redactor() = default;
Redactor::~Redactor() = default;

bool Redactor::add(std::string_view secret) {
  secret = redaction::trimmed(secret);
  if (secret.size() < kShortest) return false;
  const std::lock_guard lock(mutex_);
  const auto it = secrets_.find(secret);
  if (it != secrets_.end()) {
    ++it->second;
    return true;
  }
  secrets_.emplace(secret, 1);
  matcher_ = nullptr;
  return true;
}

void Redactor::add_passing(std::string_view secret) {
  secret = redaction::trimmed(secret);
  std::string oldest;
  {
    const std::lock_guard lock(mutex_);
    if (std::find(passing_.rbegin(), passing_.rend(), secret) != passing_.rend()) return;
  }
  if (!add(secret)) return;
  {
    const std::lock_guard lock(mutex_);
    passing_.emplace_back(secret);
    if (passing_.size() <= kPassing) return;
    oldest = std::move(passing_.front());
    passing_.pop_front();
  }
  remove(oldest);
}

bool Redactor::remove(std::string_view secret) {
  secret = redaction::trimmed(secret);
  const std::lock_guard lock(mutex_);
  const auto it = secrets_.find(secret);
  if (it == secrets_.end()) return false;
  if (--it->second == 0) {
    secrets_.erase(it);
    matcher_ = nullptr;
  }
  return true;
}

std::shared_ptr<const redaction::Matcher> Redactor::matcher() const {
  const std::lock_guard lock(mutex_);
  if (!matcher_) {
    std::vector<std::string> patterns;
    for (const auto& [secret, count] : secrets_) {
      for (std::string& form : redaction::disguises(secret))
        patterns.push_back(std::move(form));
    }
    matcher_ = std::make_shared<const redaction::Matcher>(patterns);
  }
  return matcher_;
}

std::string Redactor::redact(std::string_view text) const {
  RedactingStream stream(*this);
  std::string out;
  out.reserve(text.size());
  stream.feed(text, out);
  stream.flush(out);
  return out;
}

RedactingStream::RedactingStream(const Redactor& redactor)
    : redactor_(&redactor),
      secrets_(std::make_unique<redaction::SecretFilter>()),
      shapes_(std::make_unique<redaction::ShapeFilter>()) {
  secrets_->use(redactor_->matcher());
}

RedactingStream::~RedactingStream() = default;
RedactingStream::RedactingStream(RedactingStream&&) noexcept = default;
RedactingStream& RedactingStream::operator=(RedactingStream&&) noexcept = default;

void RedactingStream::feed(std::string_view bytes, std::string& out) {
  constexpr std::size_t kPiece = 16 * 1024;  // a large text is not copied whole
  secrets_->use(redactor_->matcher());
  std::string without_secrets;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPiece);
    bytes.remove_prefix(piece.size());
    without_secrets.clear();
    secrets_->feed(piece, without_secrets);
    shapes_->feed(without_secrets, out);
  }
}

std::string RedactingStream::feed(std::string_view bytes) {
  std::string out;
  feed(bytes, out);
  return out;
}

void RedactingStream::flush(std::string& out) {
  std::string rest;
  secrets_->flush(rest);
  shapes_->feed(rest, out);
  shapes_->flush(out);
}

std::string RedactingStream::flush() {
  std::string out;
  flush(out);
  return out;
}

}  // namespace sandforge
