// Threads for work that blocks: they grow with the queue up to a limit, and queue beyond it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sandforge/runtime.hpp"

namespace sandforge {

// A piece of blocking work: queued, then running, then done. Cancelled while queued, it is done at
// once and does not run.
class BlockingJob final : public Pending, public std::enable_shared_from_this<BlockingJob> {
 public:
  BlockingJob(Lane lane, std::function<void()> work, Handler<void> done);
  void cancel() noexcept override;
  void fail(Error error) noexcept;  // in place of running it
  // How the work went, for finish(). Nothing: it was cancelled, and is done already.
  std::optional<Result<void>> run();
  void finish(Result<void> result);

 private:
  bool claim() noexcept { return !claimed_.exchange(true); }

  Lane lane_;
  std::function<void()> work_;
  Handler<void> done_;
  std::atomic<bool> claimed_{false};
};

// unavailable "runtime.no_thread"
Error no_thread();

class BlockingPool {
 public:
  // Throws std::system_error where the system has no more threads.
  using StartThread = std::function<std::thread(std::function<void()>)>;
  static std::thread start_thread(std::function<void()> work) {
    return std::thread(std::move(work));
  }

  explicit BlockingPool(std::size_t limit, StartThread start = start_thread)
      : limit_(limit), start_(std::move(start)) {}
  ~BlockingPool() { close(); }
  // Queued work is cancelled, running work is waited for, what comes later is cancelled at once.
  void close();

  // Where all threads are busy and no further one can be had, the job fails with no_thread().
  void post(std::shared_ptr<BlockingJob> job);

 private:
  bool add_thread();
  void run();

  const std::size_t limit_;
  const StartThread start_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<BlockingJob>> queue_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;  // threads that take the next job without waiting for anything
  bool closing_ = false;
};

// Blocks every signal in the calling thread until destroyed, so that threads started meanwhile get
// none: they belong to the program's own threads, and a write to a closed pipe is an error code.
class BlockSignals {
 public:
  BlockSignals();
  ~BlockSignals();
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;
};

}  // namespace sandforge
