// The example over http, against a scripted service.
#include <sandforge/testing/testing.hpp>

#include <catch2/catch.hpp>

#include "test_paths.hpp"

using namespace sandforge::testing;

namespace {

// The provider, and a box that was started.
struct Cloud {
  Host host;
  std::optional<Session> box;

  Cloud() {
    host.env["EXAMPLE_KEY"] = "hush";
    box.emplace(host, load_plugin(EXAMPLE_HTTP), "http-cpp", R"({"url":"https://cloud"})");
  }
  void start() {
    host.http.expect("POST", "/v1/boxes")
        .with_header("Authorization", "Bearer hush")
        .with_body(R"({"session":"session-1"})")
        .answer(201, R"({"id":"b1"})");
    CHECK(box->start().identity == "b1");
  }
  std::string failure_of(const std::function<void()>& fn) {
    try {
      fn();
    } catch (const Failed& e) {
      return e.what();
    }
    return "nothing was thrown";
  }
  void close() {
    CHECK(host.http.unexpected().empty());
    CHECK(host.http.unused().empty());
    CHECK_FALSE(host.logged("hush"));
    box.reset();
    CHECK(left_over() == "");
  }
};

}  // namespace

TEST_CASE("a box is made, runs a command that takes its time, and is removed") {
  Cloud cloud;
  cloud.start();
  auto& http = cloud.host.http;
  http.expect("POST", "/v1/boxes/b1/runs")
      .with_body(R"({"command":["make","test"],"cwd":"/src"})")
      .answer(201, R"({"id":"r1"})");
  http.expect("GET", "/v1/runs/r1").answer(200, R"({"done":false})");
  http.expect("GET", "/v1/runs/r1").answer(200, R"({"done":true,"exitCode":3,"output":"ok\n"})");
  CommandLine line;
  line.argv = {"make", "test"};
  line.cwd = "/src";
  const auto running = cloud.box->spawn(line);
  CHECK_FALSE(cloud.box->driver().wait([&] { return running->done > 0; }));
  CHECK(running->id == "r1");
  CHECK(cloud.host.http.requests().size() == 3);
  cloud.host.loop.advance(std::chrono::seconds(1));
  const Ran ran = cloud.box->finish(*running);
  CHECK(ran.out == "ok\n");
  CHECK(ran.code == 3);
  http.expect("DELETE", "/v1/boxes/b1").answer(204);
  cloud.box->destroy();
  cloud.box->destroy();
  cloud.close();
}

TEST_CASE("a session that has a box gets it again, and a box that is gone is removed") {
  Cloud cloud;
  cloud.host.http.expect("POST", "/v1/boxes")
      .with_body(R"({"session":"session-1","env":{"A":"1"}})")
      .answer(200, R"({"id":"b1","found":true})");
  CHECK(cloud.box->start({{"A", "1"}}).outcome == SF_OUTCOME_CONNECTED);
  cloud.host.http.expect("DELETE", "/v1/boxes/b1").answer(404);
  cloud.box->destroy();
  cloud.close();
}

TEST_CASE("a box is removed by its id, without a start") {
  Cloud cloud;
  cloud.box->context.sandbox_id = "b7";
  cloud.host.http.expect("DELETE", "/v1/boxes/b7").answer(204);
  cloud.box->destroy();
  cloud.close();
}

TEST_CASE("what the service refuses is a typed error") {
  Cloud cloud;
  cloud.box->create();
  cloud.host.http.expect("POST", "/v1/boxes").answer(401);
  const auto refused = cloud.box->driver().start();
  CHECK(refused.failure.code == SF_UNAUTHENTICATED);
  CHECK(refused.failure.message == "cannot make the box: the service answered 401");
  cloud.host.http.expect("POST", "/v1/boxes").answer(503);
  const auto unavailable = cloud.box->driver().start();
  CHECK(unavailable.failure.code == SF_UNAVAILABLE);
  CHECK(unavailable.failure.may_have_started());
  cloud.host.http.expect("POST", "/v1/boxes").fail(SF_HTTP_MAYBE_SENT, SF_TRANSPORT_LOST, "reset");
  const auto lost = cloud.box->driver().start();
  CHECK(lost.failure.code == SF_TRANSPORT_LOST);
  CHECK(lost.failure.may_have_started());
  cloud.close();
}

TEST_CASE("a cancel ends the wait for a run") {
  Cloud cloud;
  cloud.start();
  cloud.host.http.expect("POST", "/v1/boxes/b1/runs").answer(201, R"({"id":"r1"})");
  cloud.host.http.expect("GET", "/v1/runs/r1").answer(200, R"({"done":false})");
  CommandLine line;
  line.shell = "sleep 9";
  const auto running = cloud.box->spawn(line);
  CHECK_FALSE(cloud.box->driver().wait([&] { return running->done > 0; }));
  running->stream->vtbl->cancel(running->stream);
  CHECK(cloud.box->finish(*running).outcome == SF_EXIT_CANCELLED);
  CHECK(cloud.host.loop.timers() == 0);
  cloud.close();
}

TEST_CASE("without its key the provider does not open") {
  Host host;
  const auto open = [&] { Session box(host, load_plugin(EXAMPLE_HTTP), "http-cpp"); };
  CHECK_THROWS_WITH(open(), "open: the variable EXAMPLE_KEY is not set (status 6)");
}
