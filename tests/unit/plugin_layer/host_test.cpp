// The services of the host as values: on any thread, waiting on pool threads alone.
#include <sandforge/plugin/host.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "stage.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;
using std::chrono::milliseconds;

TEST_CASE("services of the host from a pool thread, and refused on the lane") {
  Stage stage;
  stage.context.clone_url = "u";
  stage.context.token = "t";
  stage.context.head = "abc";
  stage.host.env["NAME"] = "value";
  stage.host.forbidden_env = {"OTHER"};
  stage.host.secrets["key"] = "hush";
  stage.host.paths[SF_PATH_CACHE] = "/cache";
  std::string seen;
  stage.it.start = [&](Sandbox& box, Starting& starting) {
    const Host host = box.host();
    starting.identify("early");
    starting.identify("second");
    host.set_state(box.lane(), stage.it.context.get(), "k", "v").get();
    seen += host.state(box.lane(), stage.it.context.get(), "k").get().value_or("-");
    host.set_state(box.lane(), stage.it.context.get(), "k", std::nullopt).get();
    seen += host.state(box.lane(), stage.it.context.get(), "k").get().value_or("-");
    seen += host.secret(box.lane(), nullptr, "key").get();
    seen += thrown_by([&] { host.secret(box.lane(), nullptr, "none").get(); });
    seen += stage.it.context.repository_access().get().token;
    seen += stage.it.context.resolve_head("u", "t").get().value_or("-");
    seen += thrown_by([&] { stage.it.context.repository_access(5).get(); });
    host.sleep(box.lane(), milliseconds(1)).get(starting.stop());
    Host().log().warn("careful", {{"a", "b"}, LogField::secret("c", "d")});
  };
  const auto started = stage.driver->start();
  CHECK_FALSE(started.failure);
  CHECK(started.identity == "early");
  CHECK(started.identities == 1);
  CHECK(seen == "v-hush2 no such secrettabc2 no repository");
  REQUIRE(stage.host.log().size() == 1);
  CHECK(stage.host.log()[0].fields[1].value == "***");

  const Host host;
  CHECK(host.env("NAME") == "value");
  CHECK_FALSE(host.env("UNSET"));
  CHECK(thrown_by([&] { host.env("OTHER"); }) == "7 the manifest does not name the variable OTHER");
  stage.host.loop.set_time(testing::Time::by_hand);
  CHECK(host.now() == stage.host.now());
  CHECK(host.monotonic() == stage.host.loop.since_start());
  stage.host.loop.set_time(testing::Time::real);
  CHECK(host.folder(SF_PATH_CACHE) == "/cache");
  const Lane own = Lane::create();
  std::string refused;
  own.post([&] { refused = thrown_by([&] { host.sleep(own, milliseconds(1)).get(); }); });
  own.post([] { throw Error(Code::internal, "into the log"); });
  REQUIRE(stage.driver->wait([&] { return stage.host.log().size() == 2; }));
  CHECK(refused == "16 a blocking call on a lane: use a coroutine, or a pool thread");
}

TEST_CASE("log records have a level and fields, of which secret ones are masked") {
  Ground ground;
  Log::debug("one");
  Log::info("two");
  Log::error("three", {{"a", "b"}, LogField::secret("key", "hush")});
  REQUIRE(ground.host.log().size() == 3);
  CHECK(ground.host.log()[0].level == SF_LOG_DEBUG);
  CHECK(ground.host.log()[1].level == SF_LOG_INFO);
  CHECK(ground.host.log()[2].level == SF_LOG_ERROR);
  CHECK(ground.host.log()[2].fields.at(1).value == "***");
  CHECK(Log::keeps(SF_LOG_DEBUG));
}

TEST_CASE("a service that the host does not offer is a typed error, but for the log") {
  Ground ground;
  ground.host.absent = {SF_SERVICE_LOG,   SF_SERVICE_ENV,     SF_SERVICE_CLOCK, SF_SERVICE_EXECUTOR,
                        SF_SERVICE_STATE, SF_SERVICE_SECRETS, SF_SERVICE_PATHS};
  detail::services().fill(&ground.host);
  const Host host;
  host.log().error("to nobody");
  CHECK_FALSE(Log::keeps(SF_LOG_ERROR));
  const Lane& lane = ground.lane;
  const std::vector<std::function<void()>> asks = {[&] { host.env("NAME"); },
                                                   [&] { host.now(); },
                                                   [&] { host.monotonic(); },
                                                   [&] { host.folder(SF_PATH_CACHE); },
                                                   [&] { host.sleep(lane, milliseconds(0)); },
                                                   [&] { host.state(lane, nullptr, "k"); },
                                                   [&] { host.set_state(lane, nullptr, "k", ""); },
                                                   [&] { host.secret(lane, nullptr, "k"); }};
  for (const auto& ask : asks)
    CHECK(code_of(ask) == Code::unsupported);
}

TEST_CASE("a time below zero is over at once, and an empty value differs from an absent one") {
  Ground ground;
  const Host host;
  ground.off_lane([&] {
    host.sleep(ground.lane, milliseconds(-5)).get();
    host.set_state(ground.lane, nullptr, "k", "").get();
    CHECK(host.state(ground.lane, nullptr, "k").get() == "");
    CHECK_FALSE(host.state(ground.lane, nullptr, "other").get());
  });
  CHECK_FALSE(host.folder(SF_PATH_CACHE));
}
