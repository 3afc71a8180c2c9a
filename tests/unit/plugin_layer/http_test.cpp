// Whole answers of the host's http client, waited for on a pool thread.
#include <sandforge/plugin/http.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"
#include "thrown.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;

namespace {

// A client on the lane of the ground, used from threads that may block.
struct Web {
  Ground ground;
  std::optional<HttpClient> client;

  explicit Web(const HttpOptions& options = HttpOptions("http://box")) {
    client.emplace(ground.lane, options);
  }
  ~Web() {
    ground.on_lane([&] { client.reset(); });
  }
  HttpAnswer send(const HttpRequest& request) {
    HttpAnswer answer;
    ground.off_lane([&] { answer = client->send(request).get(); });
    return answer;
  }
  std::optional<Error> failure_of(const HttpRequest& request) {
    std::optional<Error> failure;
    ground.off_lane([&] {
      try {
        client->send(request).get();
      } catch (const Error& e) {
        failure = e;
      }
    });
    return failure;
  }
};

}  // namespace

TEST_CASE("options of a client and the deadline of a request reach the host") {
  HttpOptions options("http://box");
  options.proxy_url = "http://u:p@proxy:3128";
  options.user_timeout = std::chrono::seconds(7);
  options.keepalive = std::chrono::milliseconds(1500);
  Web web(options);
  HttpRequest request("GET", "/");
  request.total_timeout = std::chrono::minutes(1);
  web.ground.host.http.expect("GET", "/");
  CHECK(web.send(request).status == 200);
  const auto seen = web.ground.host.http.requests().at(0);
  CHECK(seen.base_url == "http://box");
  CHECK(seen.proxy_url == "http://u:p@proxy:3128");
  CHECK(seen.user_timeout_ms == 7000);
  CHECK(seen.keepalive_ms == 1500);
  CHECK(seen.total_timeout_ms == 60'000);
}

TEST_CASE("a request goes out as it was made, and its answer comes back whole") {
  Web web;
  web.ground.host.http.expect("PUT", "/x?y=1")
      .with_header("A", "b")
      .with_body("content")
      .answer(404, std::string(300'000, 'z'))
      .answer_header("X-Id", "7");
  HttpRequest request("PUT", "/x?y=1", "content");
  request.headers.emplace_back("A", "b");
  const HttpAnswer answer = web.send(request);
  CHECK(answer.status == 404);
  CHECK(answer.body.size() == 300'000);
  CHECK(answer.header("x-id") == "7");
  CHECK(answer.header("none").empty());
  CHECK(web.ground.host.http.requests().at(0).base_url == "http://box");
}

TEST_CASE("an answer that is too long ends the request") {
  Web web;
  web.ground.host.http.expect("GET", "/").answer(200, "12345");
  HttpRequest request;
  request.max_answer = 4;
  const auto failure = web.failure_of(request);
  REQUIRE(failure);
  CHECK(failure->code() == Code::no_space);
  CHECK(failure->message() == "the answer is longer than 4 bytes");
  CHECK(failure->may_have_started());
}

TEST_CASE("an error of the host says whether the request may have had its effect") {
  Web web;
  auto& http = web.ground.host.http;
  http.expect("GET", "/").fail(SF_HTTP_MAYBE_SENT, SF_TRANSPORT_LOST, "reset");
  http.expect("GET", "/").fail(SF_HTTP_NOT_CONNECTED, SF_TRANSPORT_LOST, "refused");
  for (const bool may : {true, false}) {
    const auto failure = web.failure_of(HttpRequest());
    REQUIRE(failure);
    CHECK(failure->may_have_started() == may);
  }
}

TEST_CASE("a stop cancels the request, before it began and while it waits") {
  Web web;
  web.ground.host.http.handler = [](const std::shared_ptr<testing::Exchange>&) {};
  StopSource early;
  early.request_stop(StopReason::cancelled);
  std::string before, during;
  web.ground.off_lane(
      [&] { before = thrown_by([&] { web.client->send(HttpRequest()).get(early.token()); }); });
  CHECK(before.rfind("13 ", 0) == 0);
  StopSource stop;
  web.ground.host.http.handler = [&](const std::shared_ptr<testing::Exchange>&) {
    stop.request_stop(StopReason::cancelled);
  };
  web.ground.off_lane(
      [&] { during = thrown_by([&] { web.client->send(HttpRequest()).get(stop.token()); }); });
  CHECK(during.rfind("13 ", 0) == 0);
}

TEST_CASE("a refusal becomes the error that its status means") {
  const auto of = [](std::uint32_t status) {
    HttpAnswer answer;
    answer.status = status;
    answer.headers.emplace_back("retry-after", "30");
    return code_of([&] { answer.throw_if_refused("look"); });
  };
  CHECK(of(400) == Code::invalid);
  CHECK(of(401) == Code::unauthenticated);
  CHECK(of(403) == Code::forbidden);
  CHECK(of(404) == Code::not_found);
  CHECK(of(409) == Code::conflict);
  CHECK(of(410) == Code::gone);
  CHECK(of(500) == Code::unavailable);
  HttpAnswer limited;
  limited.status = 429;
  limited.headers.emplace_back("Retry-After", "30");
  try {
    limited.throw_if_refused("look");
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(e.code() == Code::rate_limited);
    CHECK(e.message() == "cannot look: the service answered 429");
    CHECK(e.retry_after() == std::chrono::seconds(30));
    CHECK_FALSE(e.may_have_started());
  }
  HttpAnswer good;
  good.status = 302;
  CHECK_NOTHROW(good.throw_if_refused("look"));
}

TEST_CASE("without the service there is no client") {
  Ground ground;
  ground.host.absent = {SF_SERVICE_HTTP};
  detail::services().fill(&ground.host);
  CHECK(code_of([&] { HttpClient none(ground.lane, HttpOptions()); }) == Code::unsupported);
}
