#include "sandforge/runtime.hpp"

#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace sandforge {

namespace asio = boost::asio;
using Strand = asio::strand<asio::io_context::executor_type>;

Lane::Lane(asio::any_io_executor strand) : executor_(std::move(strand)) {}

void Lane::post(std::function<void()> work) const {
  asio::post(executor_, std::move(work));
}

void Lane::dispatch(std::function<void()> work) const {
  if (is_current()) {
    work();
  } else {
    post(std::move(work));
  }
}

bool Lane::is_current() const {
  const auto* strand = executor_.target<Strand>();
  return strand != nullptr && strand->running_in_this_thread();
}

namespace {

class Timer final : public Pending, public std::enable_shared_from_this<Timer> {
 public:
  Timer(const Lane& lane, Handler<void> done)
      : lane_(lane), timer_(lane.executor()), done_(std::move(done)) {}

  void start(std::chrono::milliseconds delay) {
    lane_.post([self = shared_from_this(), delay] { self->arm(delay); });
  }

  void cancel() noexcept override {
    cancelled_.store(true);
    lane_.post([self = shared_from_this()] { self->timer_.cancel(); });
  }

 private:
  void arm(std::chrono::milliseconds delay) {
    if (cancelled_.load()) return finish();
    timer_.expires_after(delay);
    timer_.async_wait(
        [self = shared_from_this()](const boost::system::error_code&) { self->finish(); });
  }

  void finish() {
    if (!done_) return;
    auto done = std::move(done_);
    done_ = nullptr;
    if (cancelled_.load()) {
      std::move(done)(Error(Status::cancelled, "the timer was cancelled"));
    } else {
      std::move(done)(Result<void>());
    }
  }

  Lane lane_;
  asio::steady_timer timer_;
  Handler<void> done_;
  std::atomic<bool> cancelled_{false};
};

// A piece of blocking work: queued, then running, then done.
class Job final : public Pending, public std::enable_shared_from_this<Job> {
 public:
  Job(Lane lane, std::function<void()> work, Handler<void> done)
      : lane_(std::move(lane)), work_(std::move(work)), done_(std::move(done)) {}

  void cancel() noexcept override {
    if (claim()) finish(Error(Status::cancelled, "the work was cancelled before it began"));
  }

  void run() {
    if (!claim()) return;
    try {
      work_();
      work_ = nullptr;
      finish({});
    } catch (const std::exception& e) {
      finish(Error(Status::internal, e.what()));
    } catch (...) {
      finish(Error(Status::internal, "blocking work threw something that is no std::exception"));
    }
  }

 private:
  bool claim() noexcept { return !claimed_.exchange(true); }

  void finish(Result<void> result) {
    lane_.post([self = shared_from_this(), result = std::move(result)]() mutable {
      auto done = std::move(self->done_);
      std::move(done)(std::move(result));
    });
  }

  Lane lane_;
  std::function<void()> work_;
  Handler<void> done_;
  std::atomic<bool> claimed_{false};
};

// Threads that grow with the queue up to a limit.
class BlockingPool {
 public:
  explicit BlockingPool(std::size_t limit) : limit_(limit) {}

  ~BlockingPool() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_)
      thread.join();
  }

  void post(std::shared_ptr<Job> job) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(job));
      if (idle_ < queue_.size() && threads_.size() < limit_)
        threads_.emplace_back([this] { run(); });
    }
    wake_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      wake_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      --idle_;
      if (queue_.empty()) return;
      auto job = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      job->run();
      job.reset();
      lock.lock();
    }
  }

  const std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> queue_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool closing_ = false;
};

}  // namespace

struct Runtime::Impl {
  explicit Impl(const Options& options)
      : context(static_cast<int>(options.io_threads)),
        guard(asio::make_work_guard(context)),
        pool(std::make_unique<BlockingPool>(options.blocking_threads)) {
    for (std::size_t i = 0; i < options.io_threads; ++i)
      threads.emplace_back([this] { context.run(); });
  }

  ~Impl() {
    pool.reset();  // what its jobs post still runs
    guard.reset();
    context.stop();
    for (auto& thread : threads)
      thread.join();
  }

  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> guard;
  std::vector<std::thread> threads;
  std::unique_ptr<BlockingPool> pool;
};

Runtime::Runtime() : Runtime(Options()) {}
Runtime::Runtime(Options options) : impl_(std::make_unique<Impl>(options)) {}
Runtime::~Runtime() = default;

Lane Runtime::make_lane() {
  return Lane(asio::make_strand(impl_->context));
}

asio::any_io_executor Runtime::io_executor() {
  return impl_->context.get_executor();
}

std::shared_ptr<Pending> Runtime::timer(Lane lane, std::chrono::milliseconds delay,
                                        Handler<void> done) {
  auto timer = std::make_shared<Timer>(lane, std::move(done));
  timer->start(delay);
  return timer;
}

std::shared_ptr<Pending> Runtime::post_blocking(Lane lane, std::function<void()> work,
                                                Handler<void> done) {
  auto job = std::make_shared<Job>(std::move(lane), std::move(work), std::move(done));
  impl_->pool->post(job);
  return job;
}

}  // namespace sandforge
