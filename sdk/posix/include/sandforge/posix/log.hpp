// The retained output of one process: a ring of bytes, in the order in which they were read, that
// remembers which stream each stretch belongs to.
//
// Oldest bytes go first, when the ring is full or when they were acknowledged. Offsets per stream
// count from the first byte ever written, so that what was dropped is known exactly.
#pragma once

#include <sys/uio.h>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

namespace sandforge::posix {

// One bound over all logs of a program. A log that may not grow wraps earlier.
struct LogBudget {
  std::size_t limit = 64 * 1024 * 1024;
  std::size_t used = 0;
};

class OutputLog {
 public:
  static constexpr std::size_t kMinimum = 4096;

  OutputLog(LogBudget& budget, std::size_t limit);
  ~OutputLog();
  OutputLog(const OutputLog&) = delete;
  OutputLog& operator=(const OutputLog&) = delete;

  // A place in the log, in bytes of both streams together.
  using Position = std::uint64_t;
  Position begin() const noexcept { return begin_; }
  Position end() const noexcept { return end_; }

  // Room for the next bytes, at most `want`, as one or two areas; bytes at `keep` and later are
  // not given up for it. Returns its size, 0 when what must be kept fills the ring. Old bytes may
  // lie there, which are dropped as far as they are written over: commit before anything else.
  std::size_t prepare(std::size_t want, Position keep, struct iovec areas[2]);
  // `size` bytes of `stream` (0 or 1) were put there.
  void commit(int stream, std::size_t size);
  // prepare, copy and commit. Returns how much was taken.
  std::size_t append(int stream, const char* data, std::size_t size, Position keep);

  // One contiguous stretch of one stream.
  struct Slice {
    int stream = 0;
    std::uint64_t offset = 0;  // in the stream
    const char* data = nullptr;
    std::size_t size = 0;
  };
  // What lies at `at`, at most `want` bytes; `at` moves up to begin() if it was dropped. False at
  // the end. Valid until the next prepare.
  bool look(Position& at, std::size_t want, Slice& slice) const;

  // Bytes before these offsets are wanted by nobody; leading stretches of them are dropped.
  void acknowledge(const std::uint64_t offsets[2]);
  void clear();  // gives the memory back; offsets stay

  std::uint64_t total(int stream) const noexcept { return total_[stream]; }
  // The oldest offset that is retained; total() when nothing is.
  std::uint64_t first(int stream) const noexcept;
  std::size_t capacity() const noexcept { return capacity_; }

 private:
  struct Segment {
    Position at;
    std::uint64_t offset;
    std::uint32_t size;
    std::uint8_t stream;
  };
  void grow(std::size_t wanted);
  void drop_before(Position position);
  std::size_t index(Position position) const noexcept {
    return static_cast<std::size_t>(position) & (capacity_ - 1);
  }

  LogBudget& budget_;
  std::size_t limit_;  // a power of two
  std::size_t capacity_ = 0;
  std::unique_ptr<char[]> ring_;
  Position begin_ = 0;
  Position end_ = 0;
  std::uint64_t total_[2] = {0, 0};
  std::deque<Segment> segments_;
};

}  // namespace sandforge::posix
