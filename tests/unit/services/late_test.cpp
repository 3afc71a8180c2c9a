// What plugins still do after the Runtime of their host has ended: nothing may touch what is gone.
#include <thread>

#include <sys/socket.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "plugin/abi_lane.hpp"
#include "sandforge/ext/host_executor.h"
#include "sandforge/ext/host_state.h"
#include "unit/loader/fake_plugin.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

struct Ends {
  std::atomic<int> done{0};
  static void count(void* ctx, const sf_error*) noexcept { ++static_cast<Ends*>(ctx)->done; }
  sf_completion completion() { return {this, &Ends::count}; }
};

const sf_executor_service* executor_of(sf_host* host) {
  return static_cast<const sf_executor_service*>(
      host->vtbl->service(host, str(SF_SERVICE_EXECUTOR)));
}

sf_stream_events silent(Ends& ends) {
  return {sizeof(sf_stream_events), &ends,
          [](void*, std::uint32_t, std::uint32_t, sf_bytes) noexcept {}, [](void*) noexcept {},
          [](void* ctx, const sf_error*, const sf_stream_end*) noexcept {
            ++static_cast<Ends*>(ctx)->done;
          }};
}

}  // namespace

TEST_CASE("late: a lane that outlives the Runtime") {
  Lane lane;
  {
    Runtime runtime;
    lane = runtime.make_lane();
  }
  auto shared = std::make_shared<int>(1);
  lane.post([shared] { *shared = 2; });
  lane.dispatch([shared] { *shared = 3; });
  CHECK_FALSE(lane.is_current());
  // What cannot run is dropped at once, and whoever waits for it learns that.
  CHECK(*shared == 1);
  CHECK(shared.use_count() == 1);
}

TEST_CASE("late: a blocking call on a lane of the past fails with a typed error") {
  Lane lane;
  {
    Runtime runtime;
    lane = runtime.make_lane();
  }
  try {
    await_result<void>([&](Handler<void> handler) {
      lane.post([handler = std::move(handler)]() mutable { std::move(handler)(Result<void>()); });
    });
    FAIL("it answered");
  } catch (const Exception& e) {
    CHECK(e.error().code == Status::unavailable);
    CHECK(e.error().reason == "runtime.ended");
  }
}

TEST_CASE("late: handles of the host that a plugin still holds") {
  std::array<int, 2> sockets{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) == 0);
  Ends ends;
  sf_lane* lane = nullptr;
  sf_op* timer = nullptr;
  sf_op* work = nullptr;
  sf_stream* stream = nullptr;
  {
    Bench bench;
    sf_host* host = &bench.plugin->host;
    const auto* executor = executor_of(host);
    REQUIRE(executor->lane_create(host, &lane, nullptr) == SF_OK);
    REQUIRE(executor->timer(host, lane, 1'000'000, ends.completion(), &timer, nullptr) == SF_OK);
    REQUIRE(executor->post_blocking(
                host, lane, [](void*) noexcept {}, nullptr, ends.completion(), &work, nullptr) ==
            SF_OK);
    const auto events = silent(ends);
    REQUIRE(executor->adopt_descriptor(host, lane, sockets[0], 0, &events, &stream, nullptr) ==
            SF_OK);
  }
  CHECK(ends.done == 3);
  timer->vtbl->cancel(timer);
  timer->vtbl->release(timer);
  work->vtbl->cancel(work);
  work->vtbl->release(work);
  stream->vtbl->grant(stream, 100);
  std::size_t accepted = 7;
  const std::uint8_t byte = 1;
  CHECK(stream->vtbl->write(stream, {&byte, 1}, 0, &accepted, nullptr) != SF_OK);
  CHECK(accepted == 7);
  stream->vtbl->cancel(stream);
  stream->vtbl->release(stream);
  lane->vtbl->retain(lane);
  lane->vtbl->post(
      lane, [](void* ctx) noexcept { ++static_cast<Ends*>(ctx)->done; }, &ends);
  CHECK(lane->vtbl->is_current(lane) == 0);
  lane->vtbl->release(lane);
  lane->vtbl->release(lane);
  CHECK(ends.done == 3);
  ::close(sockets[1]);
}

TEST_CASE("late: services of a host whose Runtime has ended refuse with a typed error") {
  auto runtime = std::make_unique<Runtime>();
  auto services = std::make_shared<HostServices>();
  services->runtime = runtime.get();
  services->state = memory_state_store();
  Manifest manifest;
  manifest.name = "late";
  manifest.services = {"executor", "state"};
  auto* plugin = plugin::Plugin::reserve(std::move(manifest), "/nowhere/late.so").value();
  plugin->host.attach(services);
  sf_host* host = &plugin->host;
  const auto* executor = executor_of(host);
  const auto* state =
      static_cast<const sf_state_service*>(host->vtbl->service(host, str(SF_SERVICE_STATE)));
  REQUIRE(executor != nullptr);
  REQUIRE(state != nullptr);
  sf_lane* lane = nullptr;
  REQUIRE(executor->lane_create(host, &lane, nullptr) == SF_OK);
  runtime.reset();

  Ends ends;
  sf_lane* other = nullptr;
  sf_op* op = nullptr;
  CHECK(executor->lane_create(host, &other, nullptr) == SF_UNAVAILABLE);
  CHECK(executor->timer(host, lane, 1, ends.completion(), &op, nullptr) == SF_UNAVAILABLE);
  CHECK(executor->post_blocking(
            host, lane, [](void*) noexcept {}, nullptr, ends.completion(), &op, nullptr) ==
        SF_UNAVAILABLE);
  std::array<int, 2> sockets{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) == 0);
  sf_stream* stream = nullptr;
  const auto events = silent(ends);
  CHECK(executor->adopt_descriptor(host, lane, sockets[0], 0, &events, &stream, nullptr) ==
        SF_UNAVAILABLE);
  const sf_bytes value{reinterpret_cast<const std::uint8_t*>("v"), 1};
  CHECK(state->set(host, lane, nullptr, str("k"), value, ends.completion(), &op, nullptr) ==
        SF_UNAVAILABLE);
  CHECK(other == nullptr);
  CHECK(op == nullptr);
  CHECK(stream == nullptr);
  CHECK(ends.done == 0);
  ::close(sockets[0]);
  ::close(sockets[1]);
  lane->vtbl->release(lane);
  plugin->host.attach(nullptr);
}

TEST_CASE("late: a process and a sandbox that end after the Runtime") {
  auto* fake = new FakeProcess;
  sf_stream_events io{};
  sf_process_events more{};
  auto sink = std::make_shared<RecordingSink>();
  std::shared_ptr<SandboxBackend> sandbox;
  std::shared_ptr<ProcessBackend> process;
  std::shared_ptr<ProviderBackend> provider;
  sf_completion stop{};
  sf_sandbox* plugins_sandbox = nullptr;
  sf_provider* plugins_provider = nullptr;
  {
    Bench bench;
    sandbox = bench.make_sandbox();
    provider = bench.backend;
    plugins_sandbox = bench.sandbox;
    plugins_provider = bench.provider;
    bench.sandbox->spawn_gives(fake);
    bench.sandbox->on_stop = [&stop](sf_completion done, sf_op** op, const sf_error_sink*) {
      stop = done;
      FakeOp::give(op);
      return SF_OK;
    };
    Command command;
    command.argv = {"true"};
    process = bench.on(bench.sandbox_lane, [&] { return sandbox->spawn(command, sink); }).value();
    bench.on(bench.sandbox_lane, [&] { sandbox->stop(Handler<void>([](const Result<void>&) {})); });
    io = fake->events;
    more = fake->process_events;
  }
  // The plugin's own threads go on, and so does the host's code.
  std::thread([&] {
    fake->started();
    fake->data("late");
    fake->exited();
    fake->done(4);
    stop.done(stop.ctx, nullptr);
  }).join();
  process->grant(10);
  process->cancel();
  bool told = false;
  process->signal(15, true, Handler<void>([&told](const Result<void>&) { told = true; }));
  CHECK_FALSE(told);
  process = nullptr;
  sandbox = nullptr;
  provider = nullptr;
  CHECK(sink->events().empty());
  // Their release belongs on a lane, and there is none: they stay, and are the plugin's own.
  CHECK(FakeSandbox::alive == 1);
  CHECK(FakeProvider::alive == 1);
  plugins_sandbox->vtbl->release(plugins_sandbox);
  plugins_provider->vtbl->release(plugins_provider);
}

TEST_CASE("late: threads that post while the Runtime ends") {
  for (int round = 0; round < 20; ++round) {
    auto runtime = std::make_unique<Runtime>();
    const Lane lane = runtime->make_lane();
    std::atomic<bool> stop{false};
    std::atomic<int> posted{0};
    auto shared = std::make_shared<std::atomic<int>>(0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (!stop.load()) {
          lane.post([shared] { ++*shared; });
          ++posted;
          if (posted.load() > 20'000) std::this_thread::yield();
        }
      });
    }
    while (posted.load() < 300)
      std::this_thread::yield();
    runtime.reset();
    stop.store(true);
    for (auto& thread : threads)
      thread.join();
    // Each one ran or was dropped; nothing waits in a queue that nobody works off.
    CHECK(shared.use_count() == 1);
  }
}
