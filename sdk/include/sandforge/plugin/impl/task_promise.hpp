// What the compiler asks of a Task, and what a Task may await.
#pragma once

namespace sandforge::plugin {
namespace detail {

// Only what is listed here can be awaited: a foreign awaitable could resume off the lane.
class PromiseBase {
 public:
  std::suspend_always initial_suspend() const noexcept { return {}; }
  class Last {
   public:
    bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> ended) const noexcept {
      ended.promise().ended();
    }
    void await_resume() const noexcept {}
  };
  Last final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { error_ = std::current_exception(); }

  template <class T>
  AsyncAwaiter<T> await_transform(Async<T>&& operation) {
    return AsyncAwaiter<T>(std::move(operation), *runner_, stop_);
  }
  template <class T>
  TaskAwaiter<T> await_transform(Task<T>&& task) {
    return TaskAwaiter<T>(std::move(task), *runner_, stop_);
  }
  Ready<Lane> await_transform(ThisLane) const { return Ready<Lane>(runner_->lane()); }
  Ready<StopToken> await_transform(ThisStop) const { return Ready<StopToken>(stop_); }
  WakeAwaiter await_transform(const std::shared_ptr<Wake>& wake) const;
  GroupAwaiter await_transform(Group& group) const;

  // Makes it ready to run. parent is continued at its end; null: the runner is told.
  void prepare(Runner& runner, const StopToken& stop, std::coroutine_handle<> parent) {
    runner_ = &runner;
    if (!own_stop_) stop_ = stop;
    parent_ = parent;
  }
  void obey(StopToken stop) {
    own_stop_ = true;
    stop_ = std::move(stop);
  }

 protected:
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void ended() noexcept {
    if (parent_) return runner_->next(parent_);
    runner_->end();
  }

  Runner* runner_ = nullptr;
  StopToken stop_;
  bool own_stop_ = false;
  std::coroutine_handle<> parent_;
  std::exception_ptr error_;
};

template <class T>
class Promise : public PromiseBase {
 public:
  void return_value(T value) { value_.emplace(std::move(value)); }
  T result() {
    rethrow();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class Promise<void> : public PromiseBase {
 public:
  void return_void() const noexcept {}
  void result() const { rethrow(); }
};

// Runs another coroutine in the place of the one that waits.
template <class T>
class TaskAwaiter {
 public:
  TaskAwaiter(Task<T>&& task, Runner& runner, const StopToken& stop)
      : task_(std::move(task)), child_(task_.handle()), runner_(runner), stop_(stop) {}
  TaskAwaiter(const TaskAwaiter&) = delete;
  TaskAwaiter& operator=(const TaskAwaiter&) = delete;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> parent) noexcept {
    child_.promise().prepare(runner_, stop_, parent);
    runner_.next(child_);
  }
  T await_resume() { return child_.promise().result(); }

 private:
  Task<T> task_;
  const typename Task<T>::Handle child_;
  Runner& runner_;
  const StopToken& stop_;
};

// Begins an operation of the host and waits for its end.
template <class T>
class AsyncAwaiter final : private Pending<T> {
 public:
  AsyncAwaiter(Async<T>&& operation, Runner& runner, const StopToken& stop)
      : operation_(std::move(operation)), runner_(runner), stop_(stop) {}
  AsyncAwaiter(const AsyncAwaiter&) = delete;
  AsyncAwaiter& operator=(const AsyncAwaiter&) = delete;

  // The last step that may throw is the begin itself: from then on the host writes here.
  bool await_ready() {
    stop_.throw_if_stopped();
    on_stop_.emplace(stop_, [this] { cancel(); });
    ErrorCatcher errors;
    sf_op* op = nullptr;
    const sf_status status = operation_.begin(this, &op, errors.sink());
    if (status != SF_OK) on_stop_.reset();
    errors.check(status);
    op_ = op;
    if (stop_.stop_requested()) cancel();
    return wake_.is_set();
  }
  bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
    return wake_.wait(runner_, coroutine);
  }
  T await_resume() {
    on_stop_.reset();
    sf_op* op = op_;
    if (op != nullptr) op->vtbl->release(op);
    return this->take();
  }

 private:
  void ready() noexcept override { wake_.set(); }
  void cancel() noexcept {
    sf_op* op = op_;
    if (op != nullptr) op->vtbl->cancel(op);
  }

  Async<T> operation_;
  Runner& runner_;
  const StopToken& stop_;
  Wake wake_;
  std::atomic<sf_op*> op_{nullptr};
  std::optional<StopCallback> on_stop_;
};

class WakeAwaiter {
 public:
  WakeAwaiter(std::shared_ptr<Wake> wake, Runner& runner) noexcept
      : wake_(std::move(wake)), runner_(runner) {}
  bool await_ready() const noexcept { return wake_->is_set(); }
  bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
    return wake_->wait(runner_, coroutine);
  }
  void await_resume() const noexcept {}

 private:
  std::shared_ptr<Wake> wake_;
  Runner& runner_;
};

inline WakeAwaiter PromiseBase::await_transform(const std::shared_ptr<Wake>& wake) const {
  return WakeAwaiter(wake, *runner_);
}

}  // namespace detail

template <class T>
class Task<T>::promise_type : public detail::Promise<T> {
 public:
  Task get_return_object() noexcept { return Task(Handle::from_promise(*this)); }
};

}  // namespace sandforge::plugin
