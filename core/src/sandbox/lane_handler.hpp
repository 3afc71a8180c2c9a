// Handlers that are given to code of others: hooks, context functions, other lanes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sandforge/handler.hpp"
#include "sandforge/runtime.hpp"

namespace sandforge::sandbox {

// Runs move-only work on the lane, later. [any]
template <class Work>
void post(const Lane& lane, Work work) {
  lane.post(std::move(work));
}

// A handler that may be called from any thread, also inline, and whose answer arrives on the lane.
// Dropping it uncalled is an answer too: nobody waits forever for a hook that forgot its handler.
template <class T, class Next>
class LaneHandler {
 public:
  LaneHandler(Lane lane, std::string who, Next next)
      : lane_(std::move(lane)), who_(std::move(who)), next_(std::move(next)), armed_(true) {}
  LaneHandler(LaneHandler&& other) noexcept
      : lane_(std::move(other.lane_)),
        who_(std::move(other.who_)),
        next_(std::move(other.next_)),
        armed_(std::exchange(other.armed_, false)) {}
  LaneHandler& operator=(LaneHandler&&) = delete;
  ~LaneHandler() {
    if (armed_)
      (*this)(Error(Status::internal, who_ + " dropped its handler without an answer",
                    "handler.dropped"));
  }

  void operator()(Result<T> result) {
    armed_ = false;
    post(lane_, [next = std::move(next_), result = std::move(result)]() mutable {
      next(std::move(result));
    });
  }

 private:
  Lane lane_;
  std::string who_;
  Next next_;
  bool armed_;
};

// who: for the message, such as "the onStart hook".
template <class T, class Next>
Handler<T> on_lane(Lane lane, std::string who, Next next) {
  return Handler<T>(LaneHandler<T, Next>(std::move(lane), std::move(who), std::move(next)));
}

// Runs code of others that must not throw; what it throws becomes an Error.
template <class Work>
Result<void> contained(std::string_view who, Work&& work) {
  try {
    std::forward<Work>(work)();
    return {};
  } catch (const Exception& e) {
    return e.error();
  } catch (const std::exception& e) {
    return Error(Status::internal, std::string(who) + " threw: " + e.what(), "callback.threw");
  } catch (...) {
    return Error(Status::internal, std::string(who) + " threw something unknown", "callback.threw");
  }
}

// Asks code of others: calls work with a handler, whose answer arrives on the lane. When work
// throws, that is the answer. [lane]
template <class T, class Next, class Work>
void ask(const Lane& lane, std::string who, Next next, Work work) {
  auto thrown = std::make_shared<std::optional<Error>>();
  auto handler = on_lane<T>(lane, who, [thrown, next = std::move(next)](Result<T> result) mutable {
    next(*thrown ? Result<T>(**thrown) : std::move(result));
  });
  const auto called = contained(who, [&] { work(std::move(handler)); });
  if (!called) *thrown = called.error();
}

}  // namespace sandforge::sandbox
