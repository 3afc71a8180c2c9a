// The deadlines of all commands of one sandbox, behind one timer.
//
// A command that ends in time leaves the timer alone: a timeout costs a warm command no timer. Used
// on the lane only.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>

#include "sandforge/runtime.hpp"

namespace sandforge::sandbox {

using Clock = std::chrono::steady_clock;

// now + delay, capped far away from overflow.
Clock::time_point after(Clock::time_point now, std::chrono::milliseconds delay) noexcept;

class Deadlines : public std::enable_shared_from_this<Deadlines> {
 public:
  using Queue = std::multimap<Clock::time_point, std::function<void()>>;
  using Ticket = Queue::iterator;

  Deadlines(Runtime& runtime, Lane lane) : runtime_(runtime), lane_(std::move(lane)) {}
  ~Deadlines();

  Ticket add(Clock::time_point when, std::function<void()> action);
  void remove(Ticket ticket) { queue_.erase(ticket); }
  Ticket none() noexcept { return queue_.end(); }

 private:
  void arm();
  void fire(std::uint64_t serial);

  Runtime& runtime_;
  Lane lane_;
  Queue queue_;
  std::shared_ptr<Pending> timer_;
  Clock::time_point armed_for_;
  std::uint64_t serial_ = 0;
};

}  // namespace sandforge::sandbox
