// For a thread that gives work to lanes and has time for it: the first idle lane that it wakes is
// kept back and run by itself, which saves the switch to another thread.
#pragma once

#include <memory>

#include "sandforge/runtime.hpp"

namespace sandforge {

namespace detail {
struct LaneQueue;
}

// One at a time for each thread, which is none of a Runtime's. While it lives, what this thread
// posts to lanes is looked at; the other lanes go to their threads as ever.
class KeptLane {
 public:
  // keeps: false keeps nothing back.
  explicit KeptLane(bool keeps) noexcept;
  // What is kept goes to its Runtime's threads.
  ~KeptLane();
  KeptLane(const KeptLane&) = delete;
  KeptLane& operator=(const KeptLane&) = delete;

  bool empty() const noexcept { return work_ == nullptr; }
  // Runs it, until that lane has no more to do. Nothing runs where its Runtime has ended.
  void run() noexcept;

 private:
  friend class Lane;
  template <class Inner>
  friend class KeepingExecutor;

  bool takes() const noexcept;

  const bool keeps_;
  bool running_ = false;
  std::shared_ptr<const detail::LaneQueue> lane_;
  std::unique_ptr<detail::Task> work_;
};

}  // namespace sandforge
