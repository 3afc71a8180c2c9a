// The executor service of the fake host: lanes, timers, blocking work, descriptors as streams.
#pragma once

#include <sandforge/ext/host_executor.h>

#include "impl/descriptor_stream.hpp"

namespace sandforge::testing {

// How blocking work runs.
enum class Blocking : std::uint8_t {
  threads,  // at once, on a thread of its own each
  held      // when the test says so: release or run_here
};

// For the host. The functions of the table are members of it, which gives them their host.
class Executor {
 public:
  explicit Executor(Loop& loop) : loop_(loop) {}

  void set_blocking(Blocking how) {
    const std::lock_guard lock(mutex_);
    how_ = how;
  }
  // Blocking work that is held.
  std::size_t held() const {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  // Starts what is held on threads, and from now on everything.
  void release() {
    set_blocking(Blocking::threads);
    for (const auto& job : take_held())
      start(job);
  }
  // Runs what is held on this thread, one after the other. Work that waits for a lane or for a
  // timer would wait for ever.
  void run_here() {
    for (const auto& job : take_held())
      if (job->begin()) job->run();
  }

  sf_status lane_create(sf_lane** lane) {
    *lane = Lane::create(loop_);
    return SF_OK;
  }
  sf_status timer(Lane& lane, std::uint64_t delay_ms, sf_completion done, sf_op** op) {
    lane.retain();
    constexpr std::uint64_t century = 3'200'000'000'000;  // more would overflow
    const std::chrono::milliseconds delay(static_cast<std::int64_t>(std::min(delay_ms, century)));
    const auto id = loop_.after(delay, [&lane, done] {
      lane.complete(done);
      lane.release();
    });
    Op::give(op, [&lane, &loop = loop_, id, done] {
      if (!loop.drop_timer(id)) return;
      lane.complete(done, Failure(SF_CANCELLED, "cancelled"));
      lane.release();
    });
    return SF_OK;
  }
  sf_status post_blocking(Lane& lane, void (*work)(void*) noexcept, void* ctx, sf_completion done,
                          sf_op** op) {
    const auto job = std::make_shared<Job>(lane, work, ctx, done);
    Op::give(op, [job] {
      if (job->begin()) job->end(Failure(SF_CANCELLED, "cancelled"));
    });
    {
      const std::lock_guard lock(mutex_);
      if (how_ == Blocking::held) {
        held_.push_back(job);
        return SF_OK;
      }
    }
    start(job);
    return SF_OK;
  }
  sf_status adopt(Lane& lane, std::int32_t descriptor, std::uint64_t window,
                  const sf_stream_events& events, sf_stream** stream) {
    ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
    const auto core = std::make_shared<DescriptorStream::Core>(
        lane, events, std::vector<DescriptorStream::Reader>{{descriptor, SF_CHANNEL_DATA}},
        descriptor, window);
    auto* handle = new DescriptorStream::Handle;
    DescriptorStream::bind(*handle, core, true);
    *stream = handle;
    const std::lock_guard lock(mutex_);
    threads_.push_back(DescriptorStream::Core::start(core));
    return SF_OK;
  }

  // Moves the threads to whoever joins them.
  void take_threads(std::vector<std::thread>& to) {
    const std::lock_guard lock(mutex_);
    for (auto& thread : threads_)
      to.push_back(std::move(thread));
    threads_.clear();
  }

 private:
  class Job {
   public:
    Job(Lane& lane, void (*work)(void*) noexcept, void* ctx, sf_completion done)
        : lane_(lane), work_(work), ctx_(ctx), done_(done) {
      lane_.retain();
    }
    ~Job() { lane_.release(); }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    Loop& loop() const { return lane_.loop(); }
    // False when it was begun or cancelled before.
    bool begin() { return !begun_.exchange(true); }
    void run() {
      work_(ctx_);
      end({});
    }
    void end(Failure failure) { lane_.complete(done_, std::move(failure)); }

   private:
    Lane& lane_;
    void (*const work_)(void*) noexcept;
    void* const ctx_;
    const sf_completion done_;
    std::atomic<bool> begun_{false};
  };

  std::vector<std::shared_ptr<Job>> take_held() {
    const std::lock_guard lock(mutex_);
    return std::exchange(held_, {});
  }
  void start(const std::shared_ptr<Job>& job) {
    if (!job->begin()) return;
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([job, busy = Loop::Outside(job->loop())] { job->run(); });
  }

  Loop& loop_;
  mutable std::mutex mutex_;
  Blocking how_ = Blocking::threads;
  std::vector<std::shared_ptr<Job>> held_;
  std::vector<std::thread> threads_;
};

}  // namespace sandforge::testing
