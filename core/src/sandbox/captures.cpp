#include "sandbox/captures.hpp"

#include "sandbox/lane_handler.hpp"

namespace sandforge::sandbox {

void Captures::run(std::string name, std::stop_token stop, Machine machine,
                   Handler<SnapshotResult> done) {
  auto job = std::make_shared<Job>(std::move(name), std::move(machine), std::move(done));
  jobs_.push_back(job);
  if (stop.stop_possible())
    job->on_stop.emplace(std::move(stop), [lane = lane_, weak = std::weak_ptr(job)] {
      post(lane, [weak] {
        if (const auto stopped = weak.lock()) cancel(*stopped);
      });
    });
  if (jobs_.size() == 1) next_job();
}

// Those that were cancelled while they waited end here, without deep stacks.
void Captures::next_job() {
  if (jobs_.empty()) return settled();
  const auto job = jobs_.front();
  if (job->cancelled)
    return post(lane_, [self = shared_from_this(), job] {
      self->ended(job, Error(Status::cancelled, "the capture was cancelled", "snapshot.cancelled"));
    });
  auto* snapshots = job->machine.backend->snapshots();
  if (snapshots == nullptr)  // of another process of the plugin
    return post(lane_, [self = shared_from_this(), job] {
      self->ended(job, Error(Status::unsupported, "this provider has no checkpoints",
                             "feature.checkpoints"));
    });
  job->pending = snapshots->create(
      job->name, [self = shared_from_this(), job](Result<std::optional<Checkpoint>> result) {
        self->ended(job, std::move(result));
      });
}

void Captures::cancel(Job& job) {
  job.cancelled = true;
  if (job.pending) job.pending->cancel();
}

void Captures::ended(const std::shared_ptr<Job>& job, Result<std::optional<Checkpoint>> result) {
  job->pending.reset();
  if (!result) return finish(job, std::move(result).error());
  SnapshotResult out;
  out.checkpoint = *std::move(result);
  if (!out.checkpoint) out.why_not = "the provider found no machine that runs";
  finish(job, std::move(out));
}

void Captures::finish(const std::shared_ptr<Job>& job, Result<SnapshotResult> result) {
  // Not inside its own callback, which only posts.
  job->on_stop.reset();
  auto done = std::move(job->done);
  std::move(done)(std::move(result));  // what it begins waits for its turn
  jobs_.pop_front();
  next_job();
}

void Captures::settle(std::function<void()> next) {
  if (jobs_.empty()) return next();
  waiting_.push_back(std::move(next));
  if (waiting_.size() == 1) limit_wait(++wait_);
}

void Captures::limit_wait(std::uint64_t wait) {
  const auto later = [&](std::chrono::milliseconds time, void (*action)(Captures&)) {
    deadlines_->add(after(Clock::now(), time), [weak = weak_from_this(), wait, action] {
      const auto self = weak.lock();
      if (self && self->wait_ == wait && !self->waiting_.empty()) action(*self);
    });
  };
  later(limits_.patience, [](Captures& self) {
    for (const auto& job : self.jobs_)
      cancel(*job);
  });
  later(limits_.patience + limits_.grace, [](Captures& self) { self.settled(); });
}

void Captures::settled() {
  for (const auto& next : std::exchange(waiting_, {}))
    next();
}

}  // namespace sandforge::sandbox
