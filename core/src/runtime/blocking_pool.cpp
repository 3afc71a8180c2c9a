#include "runtime/blocking_pool.hpp"

#include <csignal>
#include <exception>
#include <system_error>
#include <utility>

namespace sandforge {

Error no_thread() {
  return Error(Status::unavailable, "no thread could be made: the limit of processes is reached",
               "runtime.no_thread");
}

struct BlockSignals::Saved {
  sigset_t mask;
};

BlockSignals::BlockSignals() : saved_(std::make_unique<Saved>()) {
  sigset_t all;
  sigfillset(&all);
  // What a fault raises must still end the program, or reach a sanitizer's handler.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
    sigdelset(&all, fault);
  pthread_sigmask(SIG_BLOCK, &all, &saved_->mask);
}

BlockSignals::~BlockSignals() {
  pthread_sigmask(SIG_SETMASK, &saved_->mask, nullptr);
}

BlockingJob::BlockingJob(Lane lane, std::function<void()> work, Handler<void> done)
    : lane_(std::move(lane)), work_(std::move(work)), done_(std::move(done)) {}

void BlockingJob::cancel() noexcept {
  fail(Error(Status::cancelled, "the work was cancelled before it began"));
}

void BlockingJob::fail(Error error) noexcept {
  if (!claim()) return;
  work_ = nullptr;
  finish(std::move(error));
}

std::optional<Result<void>> BlockingJob::run() {
  if (!claim()) return std::nullopt;
  try {
    work_();
    work_ = nullptr;
    return Result<void>();
  } catch (const std::exception& e) {
    return Error(Status::internal, std::string("blocking work failed: ") + e.what());
  } catch (...) {
    return Error(Status::internal, "blocking work threw something that is no std::exception");
  }
}

void BlockingJob::finish(Result<void> result) {
  lane_.post([self = shared_from_this(), result = std::move(result)]() mutable {
    auto done = std::move(self->done_);
    std::move(done)(std::move(result));
  });
}

void BlockingPool::close() {
  std::deque<std::shared_ptr<BlockingJob>> left;
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    left.swap(queue_);
    threads.swap(threads_);
  }
  wake_.notify_all();
  for (const auto& job : left)
    job->cancel();
  for (auto& thread : threads)
    thread.join();
}

void BlockingPool::post(std::shared_ptr<BlockingJob> job) {
  {
    std::unique_lock lock(mutex_);
    if (closing_) {
      lock.unlock();
      job->cancel();
      return;
    }
    queue_.push_back(job);
    // Not kept for a thread that is busy: what it does may wait for this very job.
    if (idle_ < queue_.size() && threads_.size() < limit_ && !add_thread()) {
      queue_.pop_back();
      lock.unlock();
      job->fail(no_thread());
      return;
    }
  }
  wake_.notify_one();
}

bool BlockingPool::add_thread() {
  const BlockSignals blocked;
  try {
    threads_.push_back(start_([this] { run(); }));
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void BlockingPool::run() {
  std::unique_lock lock(mutex_);
  ++idle_;
  for (;;) {
    wake_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    --idle_;
    auto job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    auto result = job->run();
    lock.lock();
    // Before anybody learns that the job is done: its end may post the next one at once.
    ++idle_;
    lock.unlock();
    if (result) job->finish(*std::move(result));
    job.reset();
    lock.lock();
  }
}

}  // namespace sandforge
