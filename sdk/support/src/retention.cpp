#include "sandforge/support/retention.hpp"

#include <algorithm>

namespace sandforge {
namespace {

// What the text needs beyond the limit. Three bytes before a cut tell how the decoder stands at it
// (no sequence is longer than four, and every lead byte starts anew); three more may be unfinished
// at the end and take no room in the text yet.
constexpr std::uint64_t kContext = 6;

constexpr std::uint64_t kLargestBlock = 64 * 1024;
constexpr std::uint64_t kSmallestBlock = 256;

bool is_continuation(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// The newest code points of valid UTF-8 within `limit` bytes.
std::string_view newest(std::string_view text, std::uint64_t limit) {
  if (text.size() <= limit) return text;
  std::size_t from = text.size() - static_cast<std::size_t>(limit);
  while (from < text.size() && is_continuation(text[from]))
    ++from;
  return text.substr(from);
}

}  // namespace

RetentionBuffer::RetentionBuffer(std::uint64_t limit)
    : limit_(limit),
      kept_limit_(limit == 0 ? 0 : limit + std::min(kContext, kUnlimited - limit)),
      block_size_(static_cast<std::size_t>(std::clamp(limit / 8, kSmallestBlock, kLargestBlock))) {}

void RetentionBuffer::append(std::string_view bytes) {
  total_ += bytes.size();
  text_total_ += decoder_.count(bytes);
  if (bytes.size() >= kept_limit_) {
    blocks_.clear();
    kept_ = 0;
    bytes.remove_prefix(bytes.size() - static_cast<std::size_t>(kept_limit_));
  }
  while (!bytes.empty()) {
    if (blocks_.empty() || blocks_.back().size() == block_size_) {
      // The first block grows with the output: most commands write little.
      const bool first = blocks_.empty();
      blocks_.emplace_back();
      if (!first) blocks_.back().reserve(block_size_);
    }
    std::string& block = blocks_.back();
    const std::size_t n = std::min(block_size_ - block.size(), bytes.size());
    block.append(bytes, 0, n);
    bytes.remove_prefix(n);
    kept_ += n;
    trim();
  }
}

void RetentionBuffer::finish() noexcept {
  if (finished_) return;
  finished_ = true;
  text_total_ += decoder_.count_flush();
}

void RetentionBuffer::trim() {
  while (kept_ > kept_limit_ && kept_ - kept_limit_ >= blocks_.front().size()) {
    kept_ -= blocks_.front().size();
    blocks_.pop_front();
  }
}

std::string RetentionBuffer::tail(std::uint64_t count) const {
  std::uint64_t skip = kept_ - std::min(kept_, count);
  std::string out;
  out.reserve(static_cast<std::size_t>(kept_ - skip));
  for (const std::string& block : blocks_) {
    const std::uint64_t here = std::min<std::uint64_t>(skip, block.size());
    out.append(block, static_cast<std::size_t>(here), std::string::npos);
    skip -= here;
  }
  return out;
}

std::string RetentionBuffer::bytes() const {
  return tail(limit_);
}

RetentionBuffer::Text RetentionBuffer::text() const {
  // Decoding starts at the first byte that cannot belong to an earlier sequence. What is decoded
  // before the limit's cut only brings the decoder into step; newest() removes it again, because
  // text is never shorter than the bytes that it stands for.
  const std::string raw = tail(kept_limit_);
  std::string_view source = raw;
  if (raw.size() < total_) {
    std::size_t i = 0;
    while (i < 3 && i < source.size() && is_continuation(source[i]))
      ++i;
    source.remove_prefix(i);
  }
  Utf8Decoder decoder;
  std::string decoded = decoder.decode(source);
  if (finished_) decoder.flush(decoded);

  Text result;
  result.text = newest(decoded, limit_);
  result.dropped = text_total_ - result.text.size();
  return result;
}

std::size_t RetentionBuffer::memory() const noexcept {
  std::size_t sum = 0;
  for (const std::string& block : blocks_)
    sum += block.capacity();
  return sum;
}

}  // namespace sandforge
