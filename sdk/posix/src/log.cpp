#include "sandforge/posix/log.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace sandforge::posix {
namespace {

// Writers that alternate between streams byte by byte must not make the list of stretches larger
// than the bytes it describes.
constexpr std::size_t kSegmentLimit = 16384;
constexpr std::size_t kSegmentSize = 1U << 30;

std::size_t power_of_two(std::size_t at_least) {
  std::size_t size = OutputLog::kMinimum;
  while (size < at_least)
    size *= 2;
  return size;
}

}  // namespace

OutputLog::OutputLog(LogBudget& budget, std::size_t limit)
    : budget_(budget), limit_(power_of_two(std::min<std::size_t>(limit, 1U << 30))) {}

OutputLog::~OutputLog() {
  clear();
}

void OutputLog::clear() {
  budget_.used -= capacity_;
  capacity_ = 0;
  ring_.reset();
  segments_.clear();
  begin_ = end_;
}

void OutputLog::grow(std::size_t wanted) {
  std::size_t size = std::min(limit_, power_of_two(wanted));
  // Retention is worth memory only up to the common bound; the minimum is always there.
  while (size > std::max(capacity_, kMinimum) && budget_.used - capacity_ + size > budget_.limit)
    size /= 2;
  if (size <= capacity_) return;
  std::unique_ptr<char[]> ring(new (std::nothrow) char[size]);
  if (!ring) return;
  const std::size_t mask = size - 1;
  for (Position at = begin_; at < end_;) {
    const std::size_t from = index(at), to = static_cast<std::size_t>(at) & mask;
    const std::size_t part =
        std::min({static_cast<std::size_t>(end_ - at), capacity_ - from, size - to});
    std::memcpy(ring.get() + to, ring_.get() + from, part);
    at += part;
  }
  budget_.used += size - capacity_;
  capacity_ = size;
  ring_ = std::move(ring);
}

std::size_t OutputLog::prepare(std::size_t want, Position keep, struct iovec areas[2]) {
  want = std::min(want, limit_);
  keep = std::min(std::max(keep, begin_), end_);
  if (segments_.size() >= kSegmentLimit) {
    const Position next = segments_.front().at + segments_.front().size;
    if (next > keep) return 0;
    drop_before(next);
  }
  const auto used = static_cast<std::size_t>(end_ - begin_);
  if (capacity_ - used < want && capacity_ < limit_) grow(used + want);
  if (capacity_ == 0) return 0;
  const std::size_t room = std::min(want, capacity_ - static_cast<std::size_t>(end_ - keep));
  if (room == 0) return 0;
  const std::size_t first = std::min(room, capacity_ - index(end_));
  areas[0] = {ring_.get() + index(end_), first};
  areas[1] = {ring_.get(), room - first};
  return room;
}

void OutputLog::commit(int stream, std::size_t size) {
  if (size == 0) return;
  if (!segments_.empty() && segments_.back().stream == stream &&
      segments_.back().size < kSegmentSize) {
    segments_.back().size += static_cast<std::uint32_t>(size);
  } else {
    segments_.push_back({end_, total_[stream], static_cast<std::uint32_t>(size),
                         static_cast<std::uint8_t>(stream)});
  }
  total_[stream] += size;
  end_ += size;
  // Only now: a read that brings less than there was room for costs no more than it brought.
  if (end_ - begin_ > capacity_) drop_before(end_ - capacity_);
}

std::size_t OutputLog::append(int stream, const char* data, std::size_t size, Position keep) {
  struct iovec areas[2];
  const std::size_t room = prepare(size, keep, areas);
  if (room == 0) return 0;
  std::memcpy(areas[0].iov_base, data, areas[0].iov_len);
  std::memcpy(areas[1].iov_base, data + areas[0].iov_len, areas[1].iov_len);
  commit(stream, room);
  return room;
}

void OutputLog::drop_before(Position position) {
  while (!segments_.empty()) {
    Segment& oldest = segments_.front();
    if (oldest.at >= position) break;
    const std::uint64_t cut = std::min<std::uint64_t>(position - oldest.at, oldest.size);
    oldest.at += cut;
    oldest.offset += cut;
    oldest.size -= static_cast<std::uint32_t>(cut);
    if (oldest.size == 0) segments_.pop_front();
  }
  begin_ = std::max(begin_, position);
}

bool OutputLog::look(Position& at, std::size_t want, Slice& slice) const {
  at = std::max(at, begin_);
  if (at >= end_) return false;
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), at,
                                      [](Position p, const Segment& s) { return p < s.at; });
  const Segment& segment = *std::prev(after);
  const std::uint64_t skip = at - segment.at;
  slice.stream = segment.stream;
  slice.offset = segment.offset + skip;
  slice.data = ring_.get() + index(at);
  slice.size =
      std::min({want, static_cast<std::size_t>(segment.size - skip), capacity_ - index(at)});
  return true;
}

void OutputLog::acknowledge(const std::uint64_t offsets[2]) {
  Position position = begin_;
  for (const Segment& segment : segments_) {
    const std::uint64_t acknowledged = offsets[segment.stream];
    if (acknowledged <= segment.offset) break;
    const std::uint64_t part = std::min<std::uint64_t>(acknowledged - segment.offset, segment.size);
    position = segment.at + part;
    if (part < segment.size) break;
  }
  drop_before(position);
}

std::uint64_t OutputLog::first(int stream) const noexcept {
  for (const Segment& segment : segments_)
    if (segment.stream == stream) return segment.offset;
  return total_[stream];
}

}  // namespace sandforge::posix
