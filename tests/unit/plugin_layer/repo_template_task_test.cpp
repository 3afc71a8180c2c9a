// The plan of a repository template, asked of the fake host by a coroutine.
#include <sandforge/plugin/repo_template_task.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/driver.hpp>
#include "unit/plugin_layer/coroutine_fixture.hpp"

using namespace sandforge::plugin;
using namespace sandforge::test;
namespace testing = sandforge::testing;
using sandforge::RepoOutcome;
using sandforge::RepoRules;

namespace {

Task<RepoOutcome> resolve_task(const Context& context) {
  co_return co_await resolve_repo_template_task(context, request_of(context), RepoRules());
}

}  // namespace

TEST_CASE("a coroutine resolves heads by context, http and git, on its lane") {
  testing::Context raw;
  {
    Bench bench;
    bench.host.process.real = false;
    raw.clone_url = "https://github.com/acme/widgets";
    const std::string head(40, 'a');
    raw.head_failure = testing::Failure(SF_UNAVAILABLE, "no");
    const Context context(&raw, bench.lane());
    bench.host.http.expect("GET", "/repos/acme/widgets/commits/HEAD").answer(500, "");
    bench.host.process.expect("git ls-remote -- https://github.com/acme/widgets HEAD", 0,
                              head + "\tHEAD\n");
    const auto ended = bench.run<RepoOutcome>([&] { return resolve_task(context); });
    REQUIRE(ended.value);
    CHECK(ended.on_lane);
    REQUIRE(ended.value->plan);
    CHECK(ended.value->plan->repositories.at(0).head == head);
    CHECK(testing::HttpService::live_clients == 0);

    raw.head_failure = {};
    raw.head = head;
    CHECK(bench.run<RepoOutcome>([&] { return resolve_task(context); }).value->complete);
    bench.stop().request_stop();
    CHECK(bench.run<RepoOutcome>([&] { return resolve_task(context); }).code == Code::cancelled);
  }
  CHECK(raw.refs == 1);
  nothing_is_left();
}
