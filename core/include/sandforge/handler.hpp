// The completion handler of every asynchronous function: called exactly once.
#pragma once

#include <boost/asio/any_completion_handler.hpp>
#include <concepts>
#include <cstddef>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

#include "sandforge/error.hpp"

namespace sandforge {

// Move-only; takes any callable of a Result<T> and keeps its associated executor, allocator and
// cancellation slot.
//
// Boost 1.81's any_completion_handler must not be move-assigned as it is: the assignment passes its
// argument as an lvalue, which the converting constructor wraps, without end.
template <class T>
class Handler : public boost::asio::any_completion_handler<void(Result<T>)> {
  using Base = boost::asio::any_completion_handler<void(Result<T>)>;

 public:
  Handler() = default;
  Handler(std::nullptr_t) noexcept {}
  template <class F>
  requires(!std::derived_from<std::decay_t<F>, Base> && std::invocable<std::decay_t<F>, Result<T>>)
      Handler(F&& callable)
      : Base(std::forward<F>(callable)) {}
  Handler(Base&& other) noexcept : Base(static_cast<Base&&>(other)) {}
  Handler(Handler&& other) noexcept : Base(static_cast<Base&&>(other)) {}
  Handler& operator=(Handler&& other) noexcept {
    Handler taken(std::move(other));
    this->swap(taken);
    return *this;
  }
  Handler& operator=(std::nullptr_t) noexcept { return *this = Handler(); }

  void operator()(Result<T> result) { Base::operator()(std::move(result)); }
};

// Blocking form of an asynchronous function: starts it with a handler, waits, and throws its error.
// Never on a thread of the Runtime. When the Runtime ends first, and the handler with it, the error
// is Status::unavailable, reason "runtime.ended".
//
//   auto info = await_result<SandboxInfo>([&](auto handler) {
//     sandbox.async_info(std::move(handler));
//   });
template <class T, class Start>
T await_result(Start&& start) {
  std::promise<Result<T>> promise;
  auto future = promise.get_future();
  start(Handler<T>([promise = std::move(promise)](Result<T> result) mutable {
    promise.set_value(std::move(result));
  }));
  Result<T> result = [&]() -> Result<T> {
    try {
      return future.get();
    } catch (const std::future_error&) {
      return Error(Status::unavailable, "the runtime has ended", "runtime.ended");
    }
  }();
  return std::move(result).value();
}

}  // namespace sandforge

template <class T, class Candidate>
struct boost::asio::associated_executor<sandforge::Handler<T>, Candidate>
    : boost::asio::associated_executor<
          boost::asio::any_completion_handler<void(sandforge::Result<T>)>, Candidate> {};
