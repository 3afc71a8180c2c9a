#include "sandforge/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/defer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include "runtime/blocking_pool.hpp"
#include "runtime/kept_lane.hpp"

namespace sandforge {

namespace asio = boost::asio;

namespace {

thread_local KeptLane* keeper = nullptr;  // of this thread

}  // namespace

// That of the threads, but for what the thread that calls keeps back.
template <class Inner>
class KeepingExecutor {
 public:
  explicit KeepingExecutor(Inner inner) noexcept : inner_(std::move(inner)) {}

  template <class F>
  void execute(F&& work) const {
    if (keeper != nullptr && keeper->takes()) {
      keeper->work_ = std::make_unique<detail::TaskOf<std::decay_t<F>>>(std::forward<F>(work));
    } else {
      inner_.execute(std::forward<F>(work));
    }
  }
  template <class P>
  requires(asio::can_query_v<const Inner&, const P&>) decltype(auto) query(const P& property) const
      noexcept(noexcept(asio::query(std::declval<const Inner&>(), property))) {
    return asio::query(inner_, property);
  }
  template <class P>
  requires(asio::can_require_v<const Inner&, const P&>) auto require(const P& property) const
      noexcept(noexcept(asio::require(std::declval<const Inner&>(), property))) {
    return KeepingExecutor<std::decay_t<decltype(asio::require(inner_, property))>>(
        asio::require(inner_, property));
  }
  bool running_in_this_thread() const noexcept { return inner_.running_in_this_thread(); }
  friend bool operator==(const KeepingExecutor& a, const KeepingExecutor& b) noexcept {
    return a.inner_ == b.inner_;
  }
  friend bool operator!=(const KeepingExecutor& a, const KeepingExecutor& b) noexcept {
    return !(a == b);
  }

 private:
  Inner inner_;
};

// The queue of the threads. Lanes share it, so that a lane may outlive the Runtime: from then on
// what is posted is dropped.
class detail::Context : public asio::io_context {
 public:
  using io_context::io_context;

  enum class Post {
    now,  // any thread may take it
    own   // this thread goes on with it, where it is one of ours
  };

  template <class Strand>
  void post(const Strand& to, std::unique_ptr<Task> task, Post how) {
    {
      const std::shared_lock open(gate_);
      if (!closed_) {
        auto run = [task = std::move(task)] { task->run(); };
        if (how == Post::now) return asio::post(to, std::move(run));
        return asio::defer(to, std::move(run));
      }
    }
    task.reset();  // not under the gate: what it holds may post, too
  }

  bool closed() const {
    const std::shared_lock open(gate_);
    return closed_;
  }

  // Drops what is queued and what comes. The threads have ended; guests are waited for.
  void close() {
    {
      const std::unique_lock lock(gate_);
      closed_ = true;
    }
    for (int left = guests_.load(); left != 0; left = guests_.load())
      guests_.wait(left);
    shutdown();
  }

  // A thread that is none of ours is about to run a lane. False: closed.
  bool enter() {
    const std::shared_lock open(gate_);
    if (!closed_) guests_.fetch_add(1);
    return !closed_;
  }
  void leave() noexcept {
    guests_.fetch_sub(1);
    guests_.notify_all();
  }

  // Runs what lets exceptions through, until it comes to an end.
  template <class F>
  void run_lanes(F run) {
    for (;;) {
      try {
        return run();
      } catch (...) {
        if (!on_exception) std::terminate();
        // Outside of the lane that is kept: what it posts goes to the threads.
        KeptLane* const kept = std::exchange(keeper, nullptr);
        on_exception(std::current_exception());
        keeper = kept;
      }
    }
  }
  std::function<void(std::exception_ptr)> on_exception;  // set before anything runs

 private:
  mutable std::shared_mutex gate_;
  bool closed_ = false;
  std::atomic<int> guests_{0};
};

struct detail::LaneQueue {
  using Executor = KeepingExecutor<asio::io_context::executor_type>;
  // What a piece of work adds to its own lane goes on in the same thread: to wake another one for
  // it would cost two switches and win nothing, because it waits for the present piece anyway.
  explicit LaneQueue(std::shared_ptr<detail::Context> c)
      : context(std::move(c)),
        strand(Executor(
            asio::require(context->get_executor(), asio::execution::relationship.continuation))),
        executor(strand) {}
  bool in_other_lane() const noexcept {
    return strand.get_inner_executor().running_in_this_thread() && !strand.running_in_this_thread();
  }
  const std::shared_ptr<detail::Context> context;
  asio::strand<Executor> strand;
  asio::any_io_executor executor;
};

struct Lane::State : detail::LaneQueue {
  using LaneQueue::LaneQueue;
};

void Lane::post_task(std::unique_ptr<detail::Task> task) const {
  // Another lane can run beside this one.
  const auto how =
      state_->in_other_lane() ? detail::Context::Post::now : detail::Context::Post::own;
  const bool kept = keeper != nullptr && keeper->keeps_ && keeper->lane_ == nullptr;
  if (kept) keeper->lane_ = state_;
  state_->context->post(state_->strand, std::move(task), how);
  if (kept && keeper->empty()) keeper->lane_ = nullptr;  // it runs elsewhere
}

bool Lane::is_current() const noexcept {
  return state_ != nullptr && state_->strand.running_in_this_thread();
}

const asio::any_io_executor& Lane::executor() const noexcept {
  return state_->executor;
}

// ---- A lane that is kept back

KeptLane::KeptLane(bool keeps) noexcept : keeps_(keeps) {
  keeper = this;
}

KeptLane::~KeptLane() {
  keeper = nullptr;
  if (!work_) return;
  const auto context = lane_->context;
  if (!context->enter()) return;
  asio::post(context->get_executor(), [work = std::move(work_)] { work->run(); });
  context->leave();
}

// Before it runs: the lane that is being woken. Then: what that lane has left to do, which is asked
// for outside of it; what its work posts to others must not wait for it.
bool KeptLane::takes() const noexcept {
  return lane_ != nullptr && !work_ && (!running_ || !lane_->strand.running_in_this_thread());
}

void KeptLane::run() noexcept {
  if (!work_) return;
  const auto context = lane_->context;
  if (context->enter()) {
    running_ = true;
    context->run_lanes([this] {
      while (const auto next = std::move(work_))
        next->run();
    });
    running_ = false;
    context->leave();
  }
  work_ = nullptr;
  lane_ = nullptr;
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
        // With one thread Asio would leave to it what it posted, although another may stand in.
        context(std::make_shared<detail::Context>(
            static_cast<int>(std::max<std::size_t>(2, options.io_threads)))),
        guard(asio::make_work_guard(*context)),
        pool(std::max<std::size_t>(1, options.blocking_threads)) {
    const BlockSignals blocked;
    context->on_exception = options.on_exception;
    make_reactor();
    running = std::max<std::size_t>(1, options.io_threads);
    threads.reserve(running);
    try {
      for (std::size_t i = 0, count = running; i < count; ++i)
        threads.push_back(BlockingPool::start_thread([this] { run(); }));
    } catch (const std::system_error&) {
      stop_threads();
      throw_error(no_thread());
    } catch (...) {
      stop_threads();
      throw;
    }
  }

  // Else the first lane that needs a timer or a descriptor would make it, and end the program where
  // none is left.
  void make_reactor() {
    try {
      const asio::steady_timer first(*context);
    } catch (const boost::system::system_error& failure) {
      throw_error(Error(Status::unavailable,
                        "nothing can be waited for: " + failure.code().message(),
                        "runtime.no_descriptor"));
    }
  }

  void stop_threads() {
    context->stop();
    for (auto& thread : threads)
      thread.join();
  }

  void end() {
    tracked.cancel();
    pool.close();  // what its jobs post still runs
    store_pool.close();
    tracked.cancel();
    guard.reset();
    {
      std::unique_lock lock(mutex);
      if (!ended.wait_for(lock, options.shutdown_limit, [this] { return running == 0; }))
        context->stop();
    }
    for (auto& thread : threads)
      thread.join();
    context->close();
  }

  void run() {
    context->run_lanes([this] { context->run(); });
    const std::lock_guard lock(mutex);
    --running;
    ended.notify_all();
  }

  // Nothing wakes just this one thread, so it looks now and then.
  void stand_in(const std::atomic<bool>& over) {
    context->run_lanes([&] {
      while (!over.load())
        context->run_one_for(std::chrono::milliseconds(50));
    });
  }

  Options options;
  Tracked tracked;
  const std::shared_ptr<detail::Context> context;
  asio::executor_work_guard<asio::io_context::executor_type> guard;
  BlockingPool pool;
  BlockingPool store_pool{4};
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t running = 0;
  std::vector<std::thread> threads;
};

Runtime::Runtime(Options options)
    : impl_(std::make_shared<Impl>(std::move(options))), owner_(true) {}

Runtime::~Runtime() {
  if (owner_) impl_->end();
}

std::shared_ptr<Runtime> Runtime::handle() {
  return std::shared_ptr<Runtime>(new Runtime(impl_));
}

bool Runtime::ended() const noexcept {
  return impl_->context->closed();
}

Lane Runtime::make_lane() {
  return Lane(std::make_shared<const Lane::State>(impl_->context));
}

asio::any_io_executor Runtime::io_executor() {
  return impl_->context->get_executor();
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
  impl_->pool.post(job);
  return job;
}

void Runtime::while_waiting(const std::function<void()>& work) {
  if (!impl_->context->get_executor().running_in_this_thread()) return work();
  struct End {
    std::shared_ptr<std::atomic<bool>> over = std::make_shared<std::atomic<bool>>(false);
    ~End() { over->store(true); }
  };
  const End end;
  try {
    // The pool's threads end before the Impl does.
    post_blocking(
        make_lane(), [impl = impl_.get(), over = end.over] { impl->stand_in(*over); },
        Handler<void>([](const Result<void>&) {}));
  } catch (const std::exception&) {
    // No thread to be had: the other lanes wait, too.
  }
  work();
}

std::shared_ptr<Pending> Runtime::post_store(Lane lane, std::function<void()> work,
                                             Handler<void> done) {
  auto job = std::make_shared<BlockingJob>(std::move(lane), std::move(work), std::move(done));
  impl_->store_pool.post(job);
  return job;
}

void Runtime::track(std::weak_ptr<Pending> pending) {
  impl_->tracked.add(std::move(pending));
}

}  // namespace sandforge
