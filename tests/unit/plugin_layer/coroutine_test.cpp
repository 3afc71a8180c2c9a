// Coroutines over the services of a host: each resumes on its lane, whatever it waited for, and
// leaves nothing behind.
#include <sandforge/plugin/coroutine.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/driver.hpp>
#include "unit/plugin_layer/coroutine_fixture.hpp"

using namespace sandforge::plugin;
using namespace sandforge::test;
namespace testing = sandforge::testing;

namespace {

using std::chrono::milliseconds;

// A callback of somebody else's thread, which knows nothing of lanes.
Async<int> on_a_foreign_thread(const Lane& lane, std::vector<std::thread>& threads) {
  return {lane, [&threads](auto* pending, sf_op** op, const sf_error_sink*) {
            *op = nullptr;
            threads.emplace_back([pending] { pending->succeed(42); });
            return SF_OK;
          }};
}

Task<void> values(Bench& bench, const Context& context, Trail& trail) {
  const Counted counted;
  const Host host;
  co_await sleep_for(milliseconds(1));
  trail.at("sleep_for");
  co_await host.set_state(bench.lane(), nullptr, "key", "value");
  trail.at("set_state");
  const std::optional<std::string> value = co_await host.state(bench.lane(), nullptr, "key");
  trail.at("state=" + value.value_or("none"));
  const std::string secret = co_await host.secret(bench.lane(), nullptr, "name");
  trail.at("secret=" + secret);
  const RepositoryAccess access = co_await context.repository_access(0);
  trail.at("access=" + access.token);
  const std::optional<std::string> head = co_await context.resolve_head("url", "token");
  trail.at("head=" + head.value_or("none"));
}

Task<void> work(Bench& bench, std::vector<std::thread>& threads, Trail& trail) {
  const auto lane = co_await current_lane();
  trail.at(lane.get() == bench.lane().get() ? "current_lane" : "another lane");
  const auto on_lane = [lane] { return lane.is_current(); };
  const bool blocking = co_await run_blocking(on_lane);
  trail.at(blocking ? "blocked the lane" : "run_blocking");
  try {
    co_await run_blocking([] { throw Error(Code::no_space, "disk"); });
  } catch (const Error& e) {
    trail.at(e.message());
  }
  const int foreign = co_await on_a_foreign_thread(lane, threads);
  trail.at("foreign=" + std::to_string(foreign));
}

}  // namespace

TEST_CASE("whatever a coroutine waited for, it goes on on its lane") {
  {
    Bench bench;
    bench.host.secrets["name"] = "hush";
    testing::Context raw;
    raw.clone_url = "https://example.test/r.git";
    raw.token = "t";
    raw.head = "abc";
    Trail trail(bench.lane());
    {
      const Context context(&raw, bench.lane());
      const auto ended = bench.run<void>([&] { return values(bench, context, trail); });
      CHECK(ended.done == 1);
      CHECK(ended.on_lane);
      CHECK_FALSE(ended.code);
    }
    CHECK(trail.places() == "sleep_for set_state state=value secret=hush access=t head=abc");

    Trail working(bench.lane());
    std::vector<std::thread> threads;
    CHECK_FALSE(bench.run<void>([&] { return work(bench, threads, working); }).code);
    for (auto& thread : threads)
      thread.join();
    CHECK(working.places() == "current_lane run_blocking disk foreign=42");
    CHECK(raw.refs == 1);
  }
  nothing_is_left();
}

TEST_CASE("a service that the host lacks is a typed error of the coroutine") {
  Bench bench;
  bench.host.absent = {SF_SERVICE_EXECUTOR, SF_SERVICE_PROCESS};
  detail::services().fill(&bench.host);
  CHECK(bench.run<void>([] { return sleep_for(milliseconds(1)); }).code == Code::unsupported);
  CHECK(bench.run<void>([] { return run_blocking([] {}); }).code == Code::unsupported);
}
