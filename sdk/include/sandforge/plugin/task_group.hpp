// Several coroutines at the same time, and coroutines that obey another stop.
#pragma once

#include <coroutine>
#include <vector>

#include "task.hpp"

namespace sandforge::plugin {

/*
 * Lets an operation obey this stop instead of that of the coroutine that awaits it. With a token
 * that never stops it is carried out even when the call was cancelled:
 *
 *   co_await with_stop(StopToken(), remove_machine());
 */
template <class T>
Task<T> with_stop(StopToken stop, Task<T> task) {
  task.handle().promise().obey(std::move(stop));
  return task;
}
namespace detail {
template <class T>
Task<T> await_it(Async<T> operation) {
  co_return co_await std::move(operation);
}
}  // namespace detail
template <class T>
Task<T> with_stop(StopToken stop, Async<T> operation) {
  return with_stop(std::move(stop), detail::await_it(std::move(operation)));
}

namespace detail {

// Runs tasks side by side on one lane. It ends when all of them have.
class Group {
 public:
  explicit Group(std::vector<Task<void>> parts) : parts_(std::move(parts)) {}
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void prepare(const Lane& lane, const StopToken& outer) {
    for (Task<void>& part : parts_)
      branches_.push_back(std::make_unique<Branch>(*this, lane, std::move(part)));
    left_ = branches_.size();
    link_.emplace(outer, [this, outer] { stop_.request_stop(outer.reason()); });
  }
  bool is_empty() const noexcept { return branches_.empty(); }
  void begin() noexcept {
    for (const auto& branch : branches_)
      branch->post();
  }
  Wake& wake() noexcept { return wake_; }
  void check() {
    link_.reset();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  class Branch final : public Runner {
   public:
    Branch(Group& group, const Lane& lane, Task<void>&& task)
        : Runner(lane), group_(group), task_(std::move(task)), coroutine_(task_.handle()) {}
    void post() noexcept {
      lane().get()->vtbl->post(
          lane().get(), [](void* ctx) noexcept { static_cast<Branch*>(ctx)->start(); }, this);
    }

   private:
    void start() noexcept {
      coroutine_.promise().prepare(*this, group_.stop_.token(), nullptr);
      run(coroutine_);
    }
    void finished() noexcept override {
      try {
        coroutine_.promise().result();
      } catch (...) {
        group_.failed(std::current_exception());
      }
      group_.ended();
    }
    Group& group_;
    const Task<void> task_;
    const Task<void>::Handle coroutine_;
  };

  void failed(std::exception_ptr error) noexcept {
    if (error_) return;
    error_ = std::move(error);
    stop_.request_stop();
  }
  // The waiting coroutine is continued by a task of its own, after the branch has returned.
  void ended() noexcept {
    if (--left_ == 0) wake_.set();
  }

  std::vector<Task<void>> parts_;
  std::vector<std::unique_ptr<Branch>> branches_;
  std::size_t left_ = 0;
  std::exception_ptr error_;
  StopSource stop_;
  std::optional<StopCallback> link_;
  Wake wake_;
};

class GroupAwaiter {
 public:
  GroupAwaiter(Group& group, Runner& runner, const StopToken& stop)
      : group_(group), runner_(runner) {
    group_.prepare(runner_.lane(), stop);
  }
  bool await_ready() const noexcept { return group_.is_empty(); }
  bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
    group_.begin();
    return group_.wake().wait(runner_, coroutine);
  }
  void await_resume() { group_.check(); }

 private:
  Group& group_;
  Runner& runner_;
};

inline GroupAwaiter PromiseBase::await_transform(Group& group) const {
  return GroupAwaiter(group, *runner_, stop_);
}

}  // namespace detail

/*
 * Runs the tasks side by side, on the lane of the coroutine that awaits it: one runs while the
 * others wait. Ends when all have ended. The first exception stops the others and is thrown then;
 * a stop of the caller stops all.
 */
inline Task<void> all(std::vector<Task<void>> parts) {
  detail::Group group(std::move(parts));
  co_await group;
}
template <class... Rest>
Task<void> all(Task<void> first, Rest... rest) {
  std::vector<Task<void>> parts;
  parts.reserve(1 + sizeof...(rest));
  parts.push_back(std::move(first));
  (parts.push_back(std::move(rest)), ...);
  return all(std::move(parts));
}

}  // namespace sandforge::plugin
