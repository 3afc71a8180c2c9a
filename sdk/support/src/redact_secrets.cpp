#include <algorithm>

#include "redact_filters.hpp"

namespace sandforge::redaction {

void SecretFilter::use(std::shared_ptr<const Matcher> matcher) {
  if (matcher == matcher_) return;
  matcher_ = std::move(matcher);
  state_ = Matcher::kStart;
  std::deque<Range> found;
  found.swap(ranges_);
  for (std::size_t i = 0; i < held_.size(); ++i)
    step(i + 1);
  found.insert(found.end(), ranges_.begin(), ranges_.end());
  std::stable_sort(found.begin(), found.end(),
                   [](const Range& a, const Range& b) { return a.begin < b.begin; });
  ranges_.clear();
  for (const Range& range : found)
    add(range);
}

// `range` begins or ends after all others.
void SecretFilter::add(Range range) {
  while (!ranges_.empty() && ranges_.back().end > range.begin) {
    const Range& last = ranges_.back();
    if (last.begin <= range.begin) range.masked = last.masked;
    range.begin = std::min(range.begin, last.begin);
    range.end = std::max(range.end, last.end);
    ranges_.pop_back();
  }
  ranges_.push_back(range);
}

// Takes in the byte before `end`.
void SecretFilter::step(std::size_t end) {
  state_ = matcher_->next(state_, static_cast<unsigned char>(held_[end - 1]));
  const std::size_t length = matcher_->match(state_);
  if (length != 0) add({end - length, end, false});
}

void SecretFilter::feed(std::string_view bytes, std::string& out) {
  if (matcher_->empty() && held_.empty()) {
    out.append(bytes);
    return;
  }
  std::size_t at = held_.size();
  held_.append(bytes);
  while (at < held_.size())
    step(++at);
  settle(held_.size() - matcher_->depth(state_), out);
}

void SecretFilter::flush(std::string& out) {
  settle(held_.size(), out);
  state_ = Matcher::kStart;
  ranges_.clear();
}

// Writes what stands before `until`: no later match can reach it.
void SecretFilter::settle(std::size_t until, std::string& out) {
  std::size_t done = 0;
  while (!ranges_.empty() && ranges_.front().begin < until) {
    Range& range = ranges_.front();
    out.append(held_, done, range.begin - done);
    if (!range.masked) out.append(kMask);
    range.masked = true;
    done = std::min(range.end, until);
    if (range.end > until) {
      range.begin = until;
      break;
    }
    ranges_.pop_front();
  }
  out.append(held_, done, until - done);
  held_.erase(0, until);
  for (Range& range : ranges_) {
    range.begin -= until;
    range.end -= until;
  }
}

}  // namespace sandforge::redaction
