// Checkpoints in memory, whose answers a test can hold back. Any thread.
#pragma once

#include <map>

#include "fake_backend.hpp"
#include "sandforge/snapshots.hpp"

namespace sandforge::fake {

class Shelf final : public SnapshotsBackend {
 public:
  explicit Shelf(World& world) : world_(world) {
    const std::lock_guard lock(world.mutex);
    world.snapshots = this;
  }

  std::shared_ptr<Pending> create(std::string name,
                                  Handler<std::optional<Checkpoint>> done) override {
    auto job = std::make_shared<Job>();
    job->shelf = this;
    job->name = std::move(name);
    job->lane = lane();
    job->done = std::move(done);
    const std::lock_guard lock(mutex_);
    asked_.push_back("create " + job->name);
    jobs_.push_back(job);
    changed_.notify_all();
    if (!hold_) answer(job, next_error_);
    next_error_.reset();
    return job;
  }
  std::shared_ptr<Pending> list(Handler<std::vector<Checkpoint>> done) override {
    std::vector<Checkpoint> all;
    const std::lock_guard lock(mutex_);
    asked_.emplace_back("list");
    for (const auto& [name, one] : kept_)
      all.push_back(one);
    lane().post([done = std::move(done), all]() mutable { std::move(done)(all); });
    return nullptr;
  }
  std::shared_ptr<Pending> remove(std::string name, Handler<void> done) override {
    const std::lock_guard lock(mutex_);
    asked_.push_back("remove " + name);
    kept_.erase(name);
    lane().post([done = std::move(done)]() mutable { std::move(done)(Result<void>()); });
    return nullptr;
  }
  std::shared_ptr<Pending> start_from(std::string name, Handler<void> done) override {
    const std::lock_guard lock(mutex_);
    asked_.push_back("start_from " + name);
    Result<void> result =
        kept_.count(name) != 0 ? Result<void>() : Error(Status::not_found, "no such checkpoint");
    lane().post([done = std::move(done), result]() mutable { std::move(done)(result); });
    return nullptr;
  }

  // ---- Scripts
  void hold(bool on) {
    const std::lock_guard lock(mutex_);
    hold_ = on;
  }
  void ignore_cancel() {
    const std::lock_guard lock(mutex_);
    ignore_cancel_ = true;
  }
  void next_error(Error error) {
    const std::lock_guard lock(mutex_);
    next_error_ = std::move(error);
  }
  void without_machine() {
    const std::lock_guard lock(mutex_);
    no_machine_ = true;
  }
  // Answers the capture that waits longest; waits for one.
  bool release(std::optional<Error> error = {}) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return open() != nullptr; }))
      return false;
    answer(open(), std::move(error));
    return true;
  }
  bool wait_asked(std::size_t n) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return asked_.size() >= n; });
  }
  std::vector<std::string> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  struct Job final : Pending {
    Shelf* shelf = nullptr;
    std::string name;
    Lane lane;
    Handler<std::optional<Checkpoint>> done;
    bool answered = false;

    void cancel() noexcept override { shelf->cancelled(*this); }
  };

  Lane lane() const { return world_.creates().back().lane; }

  // With the mutex held, as the next.
  std::shared_ptr<Job> open() const {
    for (const auto& job : jobs_)
      if (!job->answered) return job;
    return nullptr;
  }
  void answer(const std::shared_ptr<Job>& job, std::optional<Error> error) {
    job->answered = true;
    Result<std::optional<Checkpoint>> result = std::optional<Checkpoint>();
    if (error) {
      result = *std::move(error);
    } else if (!no_machine_) {
      Checkpoint one;
      one.name = job->name;
      kept_[one.name] = one;
      result = std::optional<Checkpoint>(std::move(one));
    }
    job->lane.post([job, result]() mutable { std::move(job->done)(std::move(result)); });
  }
  void cancelled(Job& which) {
    const std::lock_guard lock(mutex_);
    asked_.push_back("cancel " + which.name);
    changed_.notify_all();
    if (ignore_cancel_ || which.answered) return;
    for (const auto& job : jobs_)
      if (job.get() == &which) answer(job, Error(Status::cancelled, "it was cancelled"));
  }

  World& world_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> asked_;
  std::vector<std::shared_ptr<Job>> jobs_;
  std::map<std::string, Checkpoint> kept_;
  std::optional<Error> next_error_;
  bool hold_ = false;
  bool ignore_cancel_ = false;
  bool no_machine_ = false;
};

}  // namespace sandforge::fake
