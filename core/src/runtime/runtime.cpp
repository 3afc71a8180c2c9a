#include "sandforge/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <boost/asio/defer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include "runtime/blocking_pool.hpp"

namespace sandforge {

namespace asio = boost::asio;

struct Lane::State {
  // What a piece of work adds to its own lane goes on in the same thread: to wake another one for
  // it would cost two switches and win nothing, because it waits for the present piece anyway.
  explicit State(asio::io_context& context)
      : strand(asio::require(context.get_executor(), asio::execution::relationship.continuation)),
        executor(strand) {}
  bool in_other_lane() const noexcept {
    return strand.get_inner_executor().running_in_this_thread() && !strand.running_in_this_thread();
  }
  asio::strand<asio::io_context::executor_type> strand;
  asio::any_io_executor executor;
};

void Lane::post_task(std::unique_ptr<detail::Task> task) const {
  auto work = [task = std::move(task)] { task->run(); };
  // Another lane can run beside this one.
  if (state_->in_other_lane()) return asio::post(state_->strand, std::move(work));
  asio::defer(state_->strand, std::move(work));
}

bool Lane::is_current() const noexcept {
  return state_ != nullptr && state_->strand.running_in_this_thread();
}

const asio::any_io_executor& Lane::executor() const noexcept {
  return state_->executor;
}

namespace {

class Timer final : public Pending, public std::enable_shared_from_this<Timer> {
 public:
  Timer(const Lane& lane, Handler<void> done)
      : lane_(lane), timer_(lane.executor()), done_(std::move(done)) {}

  void start(std::chrono::milliseconds delay) {
    constexpr std::chrono::milliseconds longest = std::chrono::hours(24) * 365 * 100;
    lane_.post([self = shared_from_this(), delay = std::clamp(delay, std::chrono::milliseconds(0),
                                                              longest)] { self->arm(delay); });
  }

  void cancel() noexcept override {
    if (cancelled_.exchange(true)) return;
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
    auto done = std::move(done_);
    if (cancelled_.exchange(true)) {
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

// What must be cancelled before the threads can end. Dead entries are swept as the list doubles.
class Tracked {
 public:
  void add(std::weak_ptr<Pending> pending) {
    const std::lock_guard lock(mutex_);
    if (list_.size() >= sweep_at_) {
      std::erase_if(list_, [](const auto& entry) { return entry.expired(); });
      sweep_at_ = std::max<std::size_t>(64, list_.size() * 2);
    }
    list_.push_back(std::move(pending));
  }

  void cancel() {
    std::vector<std::weak_ptr<Pending>> list;
    {
      const std::lock_guard lock(mutex_);
      list.swap(list_);
    }
    for (const auto& entry : list) {
      if (const auto pending = entry.lock()) pending->cancel();
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Pending>> list_;
  std::size_t sweep_at_ = 64;
};

}  // namespace

struct Runtime::Impl {
  explicit Impl(Options o)
      : options(std::move(o)),
        context(static_cast<int>(std::max<std::size_t>(1, options.io_threads))),
        guard(asio::make_work_guard(context)),
        pool(std::make_unique<BlockingPool>(std::max<std::size_t>(1, options.blocking_threads))) {
    const BlockSignals blocked;
    const std::size_t count = std::max<std::size_t>(1, options.io_threads);
    running = count;
    for (std::size_t i = 0; i < count; ++i)
      threads.emplace_back([this] { run(); });
  }

  ~Impl() {
    tracked.cancel();
    pool.reset();  // what its jobs post still runs
    tracked.cancel();
    guard.reset();
    {
      std::unique_lock lock(mutex);
      if (!ended.wait_for(lock, options.shutdown_limit, [this] { return running == 0; }))
        context.stop();
    }
    for (auto& thread : threads)
      thread.join();
  }

  void run() {
    for (;;) {
      try {
        context.run();
        break;
      } catch (...) {
        if (!options.on_exception) std::terminate();
        options.on_exception(std::current_exception());
      }
    }
    const std::lock_guard lock(mutex);
    --running;
    ended.notify_all();
  }

  Options options;
  Tracked tracked;
  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> guard;
  std::unique_ptr<BlockingPool> pool;
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t running = 0;
  std::vector<std::thread> threads;
};

Runtime::Runtime(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Runtime::~Runtime() = default;

Lane Runtime::make_lane() {
  return Lane(std::make_shared<const Lane::State>(impl_->context));
}

asio::any_io_executor Runtime::io_executor() {
  return impl_->context.get_executor();
}

std::shared_ptr<Pending> Runtime::timer(Lane lane, std::chrono::milliseconds delay,
                                        Handler<void> done) {
  auto timer = std::make_shared<Timer>(lane, std::move(done));
  impl_->tracked.add(timer);
  timer->start(delay);
  return timer;
}

std::shared_ptr<Pending> Runtime::post_blocking(Lane lane, std::function<void()> work,
                                                Handler<void> done) {
  auto job = std::make_shared<BlockingJob>(std::move(lane), std::move(work), std::move(done));
  impl_->pool->post(job);
  return job;
}

void Runtime::track(std::weak_ptr<Pending> pending) {
  impl_->tracked.add(std::move(pending));
}

}  // namespace sandforge
