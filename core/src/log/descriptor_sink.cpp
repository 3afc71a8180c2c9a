// Between those who log and a descriptor: a bounded queue, and a thread that may wait alone.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "log/lost.hpp"
#include "runtime/blocking_pool.hpp"
#include "sandforge/log.hpp"

namespace sandforge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kQueueBytes = 1U << 20;
constexpr std::size_t kLineBytes = 64;  // what a line takes besides its text
constexpr int kLookMs = 100;            // while nobody reads: whether it is still to be written
// For what is queued when the sink ends, and for all of it when the process does.
constexpr std::chrono::seconds kEndLimit{1};

// A record like the one that it comes before.
std::string lost_note(std::uint64_t lost, std::string_view before) {
  Logger::Options options;
  if (before.substr(0, 1) == "{") options.format = LogFormat::json;
  std::string out;
  Logger([&out](std::string_view line) { out = line; }, options)
      .write(LogLevel::warn, lost_records(lost));
  return out;
}

class Writer : public std::enable_shared_from_this<Writer> {
 public:
  explicit Writer(int descriptor) : descriptor_(descriptor) {}

  void push(std::string_view line) {
    const std::lock_guard lock(mutex_);
    std::string text = lost_ > 0 ? lost_note(lost_, line) : std::string();
    text += line;
    const std::size_t size = text.size() + kLineBytes;
    if (ending_ || (!queue_.empty() && size > kQueueBytes - std::min(kQueueBytes, bytes_))) {
      ++lost_;
      return;
    }
    if (!start()) {
      ++lost_;
      return;
    }
    queue_.push_back(std::move(text));
    bytes_ += size;
    lost_ = 0;
    changed_.notify_all();
  }

  // Writes what is queued, and nothing after the deadline: the descriptor may be closed then.
  void end(Clock::time_point deadline) noexcept {
    std::unique_lock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
    changed_.wait_until(lock, deadline, [this] { return !running_; });
    given_up_ = true;
  }

 private:
  // With the mutex. Its thread is joined by nobody: it may wait for ever. False: there is none.
  bool start() {
    if (running_) return true;
    const BlockSignals blocked;
    try {
      std::thread([self = shared_from_this()] { self->run(); }).detach();
      running_ = true;
    } catch (const std::system_error&) {
      // The next record tries again, and says how many are missing.
    }
    return running_;
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (queue_.empty() || given_up_) break;
      const std::string& text = queue_.front();  // stays where it is while others come
      lock.unlock();
      const bool written = write(text);
      lock.lock();
      if (!written) ++lost_;
      bytes_ -= text.size() + kLineBytes;
      queue_.pop_front();
    }
    running_ = false;
    changed_.notify_all();
  }

  // What polls writable takes this much at once; a pipe does, unless others fill it, too.
  bool write(std::string_view text) {
    while (!text.empty()) {
      {
        const std::lock_guard lock(mutex_);
        if (given_up_) return false;
      }
      pollfd state{descriptor_, POLLOUT, 0};
      if (::poll(&state, 1, kLookMs) <= 0) continue;
      const ssize_t n =
          ::write(descriptor_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  const int descriptor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> queue_;  // the first one is being written
  std::size_t bytes_ = 0;
  std::uint64_t lost_ = 0;  // since the last record that found room
  bool running_ = false;
  bool ending_ = false;
  bool given_up_ = false;
};

// Those that are in use when the process ends: plugins are never unloaded, and what they hold on to
// keeps its logger.
class AtExit {
 public:
  static AtExit& instance() {
    static AtExit self;
    return self;
  }

  void add(const std::shared_ptr<Writer>& writer) {
    const std::lock_guard lock(mutex_);
    std::erase_if(writers_, [](const auto& entry) { return entry.expired(); });
    writers_.push_back(writer);
  }

  ~AtExit() {
    const auto deadline = Clock::now() + kEndLimit;
    for (const auto& entry : writers_)
      if (const auto writer = entry.lock()) writer->end(deadline);
  }

 private:
  AtExit() = default;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Writer>> writers_;
};

// Ends its writer with the last copy of the sink.
struct Holder {
  explicit Holder(int descriptor) : writer(std::make_shared<Writer>(descriptor)) {}
  ~Holder() { writer->end(Clock::now() + kEndLimit); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  const std::shared_ptr<Writer> writer;
};

}  // namespace

LogSink descriptor_sink(int descriptor) {
  const auto holder = std::make_shared<Holder>(descriptor);
  AtExit::instance().add(holder->writer);
  return [holder](std::string_view line) { holder->writer->push(line); };
}

}  // namespace sandforge
