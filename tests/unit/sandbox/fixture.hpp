// A runtime, a world and a sandbox for one test.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <utility>

#include "fake_backend.hpp"

namespace sandforge {

struct Fixture {
  explicit Fixture(SandboxConfig config = {}) : world(std::make_shared<fake::World>(runtime)) {
    if (config.id.empty() && !config.context) config.id = "s1";
    sandbox = Sandbox::create(runtime, world->provider(), std::move(config)).value();
  }

  Runtime runtime;
  std::shared_ptr<fake::World> world;
  std::shared_ptr<Sandbox> sandbox;
};

// The future of an asynchronous function: later([&](auto done) { sandbox.async_start(done); }).
template <class T, class Start>
std::future<Result<T>> later(Start start) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  start(Handler<T>([promise](Result<T> result) { promise->set_value(std::move(result)); }));
  return future;
}

template <class T>
Result<T> get(std::future<Result<T>>& future) {
  if (future.wait_for(std::chrono::seconds(120)) != std::future_status::ready)
    throw std::runtime_error("no answer within two minutes");
  return future.get();
}

inline bool is_open(const auto& future) {
  return future.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

// Waits for a condition that another thread brings about.
inline bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

inline Command shell(std::string text) {
  Command command;
  command.shell = std::move(text);
  return command;
}

inline Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.error();
  }
  return Error(Status::ok, "it did not throw");
}

}  // namespace sandforge
