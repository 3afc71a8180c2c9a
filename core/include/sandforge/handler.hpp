// The completion handler of every asynchronous function: called exactly once.
#pragma once

#include <boost/asio/any_completion_handler.hpp>
#include <future>
#include <memory>

#include "sandforge/error.hpp"

namespace sandforge {

template <class T>
using Handler = boost::asio::any_completion_handler<void(Result<T>)>;

// Blocking form of an asynchronous function: starts it with a handler, waits, and throws its error.
// Never on a thread of the Runtime.
//
//   auto info = await_result<SandboxInfo>([&](auto handler) {
//   sandbox.async_info(std::move(handler)); });
template <class T, class Start>
T await_result(Start&& start) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  start(Handler<T>([promise](Result<T> result) { promise->set_value(std::move(result)); }));
  return future.get().value();
}

}  // namespace sandforge
