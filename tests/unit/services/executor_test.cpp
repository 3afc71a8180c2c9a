#include <thread>

#include <catch2/catch.hpp>

#include "plugin/abi_lane.hpp"
#include "sandforge/ext/host_executor.h"
#include "unit/loader/fake_plugin.hpp"

using namespace sandforge;
using namespace sandforge::test;
using plugin::Fault;

namespace {

struct Executor {
  Executor() {
    host = &bench.plugin->host;
    table = static_cast<const sf_executor_service*>(
        host->vtbl->service(host, str(SF_SERVICE_EXECUTOR)));
    REQUIRE(table != nullptr);
    REQUIRE(table->lane_create(host, &lane, nullptr) == SF_OK);
  }
  ~Executor() { lane->vtbl->release(lane); }
  Bench bench;
  sf_host* host = nullptr;
  const sf_executor_service* table = nullptr;
  sf_lane* lane = nullptr;
};

// The end of an operation: its code, and whether it came on the lane.
struct Ended {
  std::promise<std::pair<sf_status, bool>> promise;
  sf_lane* lane;
  explicit Ended(sf_lane* l) : lane(l) {}
  std::pair<sf_status, bool> get() {
    auto future = promise.get_future();
    if (future.wait_for(std::chrono::seconds(60)) != std::future_status::ready) return {-1, false};
    return future.get();
  }
  static void done(void* ctx, const sf_error* error) noexcept {
    auto& ended = *static_cast<Ended*>(ctx);
    ended.promise.set_value(
        {error == nullptr ? SF_OK : error->code, ended.lane->vtbl->is_current(ended.lane) == 1});
  }
  sf_completion completion() { return {this, &Ended::done}; }
};

using End = std::pair<sf_status, bool>;

}  // namespace

TEST_CASE("executor: a lane of its own") {
  Executor executor;
  sf_lane* lane = executor.lane;
  CHECK(lane->vtbl->is_current(lane) == 0);
  lane->vtbl->retain(lane);
  lane->vtbl->release(lane);
  std::promise<bool> current;
  struct Post {
    sf_lane* lane;
    std::promise<bool>* current;
  } post{lane, &current};
  lane->vtbl->post(
      lane,
      [](void* ctx) noexcept {
        auto& p = *static_cast<Post*>(ctx);
        p.current->set_value(p.lane->vtbl->is_current(p.lane) == 1);
      },
      &post);
  CHECK(current.get_future().get());
  lane->vtbl->post(lane, nullptr, nullptr);
  CHECK(executor.bench.faults(Fault::missing_value) == 1);
  CHECK(executor.table->lane_create(executor.host, nullptr, nullptr) == SF_INVALID);
}

TEST_CASE("executor: timers") {
  Executor executor;
  Ended soon(executor.lane);
  REQUIRE(executor.table->timer(executor.host, executor.lane, 1, soon.completion(), nullptr,
                                nullptr) == SF_OK);
  CHECK(soon.get() == End(SF_OK, true));

  Ended never(executor.lane);
  sf_op* op = nullptr;
  REQUIRE(executor.table->timer(executor.host, executor.lane, SF_NONE, never.completion(), &op,
                                nullptr) == SF_OK);
  op->vtbl->cancel(op);
  op->vtbl->cancel(op);
  CHECK(never.get() == End(SF_CANCELLED, true));
  op->vtbl->release(op);
  CHECK(executor.table->timer(executor.host, nullptr, 1, never.completion(), nullptr, nullptr) ==
        SF_INVALID);
}

TEST_CASE("executor: blocking work") {
  Executor executor;
  Ended ended(executor.lane);
  std::atomic<int> ran{0};
  REQUIRE(executor.table->post_blocking(
              executor.host, executor.lane,
              [](void* ctx) noexcept { ++*static_cast<std::atomic<int>*>(ctx); }, &ran,
              ended.completion(), nullptr, nullptr) == SF_OK);
  CHECK(ended.get() == End(SF_OK, true));
  CHECK(ran == 1);
  CHECK(executor.table->post_blocking(executor.host, executor.lane, nullptr, nullptr,
                                      ended.completion(), nullptr, nullptr) == SF_INVALID);
}

TEST_CASE("executor: blocking work that is cancelled in the queue does not run") {
  Executor executor;
  std::promise<void> gate;
  auto opened = gate.get_future().share();
  struct Work {
    std::shared_future<void>* opened;
    std::atomic<int> busy{0};
    std::atomic<int> ran{0};
  } work{&opened};
  const auto wait = [](void* ctx) noexcept {
    auto& w = *static_cast<Work*>(ctx);
    ++w.busy;
    w.opened->wait();
  };
  std::vector<std::unique_ptr<Ended>> all;
  for (int i = 0; i < 64; ++i) {
    all.push_back(std::make_unique<Ended>(executor.lane));
    REQUIRE(executor.table->post_blocking(executor.host, executor.lane, wait, &work,
                                          all.back()->completion(), nullptr, nullptr) == SF_OK);
  }
  while (work.busy < 64)
    std::this_thread::yield();
  Ended queued(executor.lane);
  sf_op* op = nullptr;
  REQUIRE(executor.table->post_blocking(
              executor.host, executor.lane,
              [](void* ctx) noexcept { ++static_cast<Work*>(ctx)->ran; }, &work,
              queued.completion(), &op, nullptr) == SF_OK);
  op->vtbl->cancel(op);
  CHECK(queued.get() == End(SF_CANCELLED, true));
  op->vtbl->release(op);
  gate.set_value();
  for (auto& ended : all)
    CHECK(ended->get() == End(SF_OK, true));
  CHECK(work.ran == 0);
}

TEST_CASE("executor: a host that has gone") {
  Executor executor;
  executor.bench.plugin->host.attach(nullptr);
  sf_lane* lane = nullptr;
  CHECK(executor.table->lane_create(executor.host, &lane, nullptr) == SF_UNAVAILABLE);
  CHECK(lane == nullptr);
}
