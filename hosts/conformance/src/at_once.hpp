// Operations that run at the same time, with their results as futures.
#pragma once

#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "sandforge/handler.hpp"

namespace sandforge::conformance {

template <class T>
struct Awaited {
  std::future<Result<T>> future;
  Handler<T> handler;
};

template <class T>
Awaited<T> awaited() {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  return {std::move(future),
          Handler<T>([promise](Result<T> result) { promise->set_value(std::move(result)); })};
}

// `start` gets the number of each, from 0 on, and its handler.
template <class T, class Start>
std::vector<std::future<Result<T>>> at_once(int count, const Start& start) {
  std::vector<std::future<Result<T>>> all;
  for (int i = 0; i < count; ++i) {
    auto one = awaited<T>();
    all.push_back(std::move(one.future));
    start(i, std::move(one.handler));
  }
  return all;
}

}  // namespace sandforge::conformance
