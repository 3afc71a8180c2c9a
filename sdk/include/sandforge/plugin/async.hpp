// The result of a host service that comes later. A blocking author calls get(), a coroutine awaits
// it (coroutine.hpp).
#pragma once

#include <functional>
#include <type_traits>

#include "lane.hpp"
#include "stop_token.hpp"

namespace sandforge::plugin {

// Stands where a result of void is kept.
struct Void {};

namespace detail {

template <class T>
using Boxed = std::conditional_t<std::is_void_v<T>, Void, T>;

// Where a result arrives: exactly once. ready() runs on the thread of the callback.
template <class T>
class Pending {
 public:
  virtual ~Pending() = default;

  void succeed(Boxed<T> value) noexcept {
    value_ = std::move(value);
    ready();
  }
  void fail(std::exception_ptr error) noexcept {
    error_ = std::move(error);
    ready();
  }
  void fail(const sf_error& error) noexcept {
    try {
      error_ = std::make_exception_ptr(Error::from(error));
    } catch (...) {
      error_ = std::current_exception();
    }
    ready();
  }
  // Runs make(), which gives the value; what it throws becomes the result.
  template <class Make>
  void succeed_with(Make make) noexcept {
    try {
      value_ = make();
    } catch (...) {
      error_ = std::current_exception();
    }
    ready();
  }

  T take() {
    // Moved, so that the thread that handles the error is the one that frees it.
    if (error_) std::rethrow_exception(std::move(error_));
    if constexpr (!std::is_void_v<T>) return std::move(*value_);
  }

 protected:
  virtual void ready() noexcept = 0;

 private:
  std::optional<Boxed<T>> value_;
  std::exception_ptr error_;
};

// A completion of the boundary that ends in a Pending<void>.
inline sf_completion complete(Pending<void>* pending) noexcept {
  return {pending, [](void* ctx, const sf_error* error) noexcept {
            auto& p = *static_cast<Pending<void>*>(ctx);
            if (error != nullptr) return p.fail(*error);
            p.succeed(Void{});
          }};
}

}  // namespace detail

/*
 * An operation of a host service that has not begun. It begins with get() or with co_await, and
 * must be used once. Dropped before that, it does nothing.
 */
template <class T>
class Async {
 public:
  // Begins it: calls the service so that its completion ends in the Pending, and writes the handle.
  // A status other than SF_OK, or an exception, means that it has not begun and never will.
  using Begin = std::function<sf_status(detail::Pending<T>*, sf_op**, const sf_error_sink*)>;

  Async(Lane lane, Begin begin) : lane_(std::move(lane)), begin_(std::move(begin)) {}

  /*
   * Begins it and waits for its result, on a pool thread. A stop cancels it and throws what it then
   * ends with, usually Code::cancelled. On a lane this would wait for itself: it throws at once.
   */
  T get(const StopToken& stop = {}) && {
    if (lane_.is_current()) {
      throw Error(Code::internal, "a blocking call on a lane: use a coroutine, or a pool thread");
    }
    auto waiter = std::make_shared<Waiter>();
    waiter->self = waiter;
    sf_op* op = nullptr;
    detail::ErrorCatcher errors;
    sf_status status = SF_INTERNAL;
    try {
      status = begin_(waiter.get(), &op, errors.sink());
    } catch (...) {
      waiter->self.reset();
      throw;
    }
    if (status != SF_OK) waiter->self.reset();
    errors.check(status);
    {
      const StopCallback cancel(stop, [op] {
        if (op != nullptr) op->vtbl->cancel(op);
      });
      std::unique_lock<std::mutex> lock(waiter->mutex);
      waiter->changed.wait(lock, [&] { return waiter->over; });
    }
    if (op != nullptr) op->vtbl->release(op);
    return waiter->take();
  }

  const Lane& lane() const noexcept { return lane_; }
  sf_status begin(detail::Pending<T>* pending, sf_op** op, const sf_error_sink* err) const {
    return begin_(pending, op, err);
  }

 private:
  struct Waiter final : detail::Pending<T> {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    std::shared_ptr<Waiter> self;  // the callback's own reference

    void ready() noexcept override {
      const std::shared_ptr<Waiter> keep = std::move(self);
      const std::lock_guard<std::mutex> lock(mutex);
      over = true;
      changed.notify_all();
    }
  };

  Lane lane_;
  Begin begin_;
};

}  // namespace sandforge::plugin
