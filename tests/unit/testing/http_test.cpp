// The http service of the fake host: recorded requests, a script of answers with phases.
#include <sandforge/testing/http.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/consumer.hpp>
#include <sandforge/testing/host.hpp>

using namespace sandforge::testing;

namespace {

// A client, and one request with everything that is told about it.
struct Web {
  struct Answer : Consumer {
    using Consumer::Consumer;
    std::uint32_t status = 0;
    Pairs headers;
    std::uint32_t phase = 99;
  };

  Host host;
  Lane* lane = Lane::create(host.loop);
  sf_http_client* client = nullptr;

  Web() {
    const sf_http_client_options options{
        sizeof options, str("http://box"), {}, {}, {}, 0, 0, 0, 0, 0, {}};
    host.http.client_create(&host, lane, &options, &client, nullptr);
  }
  ~Web() {
    host.http.client_release(client);
    lane->release();
    host.loop.drain();
    CHECK(left_over().empty());
  }

  Answer ask(const char* method, const char* target, const std::string& body = {},
             std::uint32_t flags = 0) {
    Answer answer(1 << 16);
    const sf_http_header header{bytes("X-Key"), bytes("k")};
    sf_http_request request{};
    request.struct_size = sizeof request;
    request.method = str(method);
    request.target = str(target);
    request.headers = &header;
    request.header_count = 1;
    request.window = 1 << 16;
    request.flags = flags;
    if ((flags & SF_HTTP_STREAM_BODY) == 0) request.body = bytes(body);
    const sf_stream_events io = answer.events();
    const sf_http_events events{sizeof events, &answer,
                                [](void* ctx, const sf_http_response* r) noexcept {
                                  auto& me = *static_cast<Answer*>(ctx);
                                  me.status = r->status;
                                  for (std::size_t i = 0; i < r->header_count; ++i)
                                    me.headers.emplace_back(text(r->headers[i].name),
                                                            text(r->headers[i].value));
                                },
                                [](void* ctx, const sf_http_end* end) noexcept {
                                  static_cast<Answer*>(ctx)->phase = end->phase;
                                }};
    lane->post([&] {
      host.http.request(client, &request, &io, &events, &answer.stream, nullptr);
      if ((flags & SF_HTTP_STREAM_BODY) == 0) return;
      std::size_t accepted = 0;
      answer.stream->vtbl->write(answer.stream, bytes(body), 0, &accepted, nullptr);
      answer.stream->vtbl->shutdown_write(answer.stream, nullptr);
    });
    CHECK(host.loop.run_until([&] { return answer.done > 0; }));
    answer.stream->vtbl->release(std::exchange(answer.stream, nullptr));
    return answer;
  }
};

}  // namespace

TEST_CASE("requests are matched against the script, each line once, and recorded") {
  Web web;
  web.host.http.expect("POST", "/boxes").with_header("x-key", "other").answer(500);
  web.host.http.expect("POST", "/boxes")
      .with_header("x-key", "k")
      .with_body("{}")
      .answer(201, "id");
  web.host.http.expect("GET", "/boxes").answer(200, "[]").answer_header("X-Total", "0");
  const auto made = web.ask("POST", "/boxes", "{}");
  CHECK(made.status == 201);
  CHECK(made.out == "id");
  CHECK(made.phase == SF_HTTP_BODY);
  CHECK_FALSE(made.failure);
  CHECK(web.ask("GET", "/boxes").headers == Pairs{{"X-Total", "0"}});
  CHECK(web.host.http.unused() == std::vector<std::string>{"POST /boxes"});
  CHECK(web.host.http.unexpected().empty());
  const auto requests = web.host.http.requests();
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].base_url == "http://box");
  CHECK(requests[0].body == "{}");
  CHECK(requests[1].header("X-KEY") == "k");
}

TEST_CASE("a request that nobody expects ends before it was sent") {
  Web web;
  const auto refused = web.ask("GET", "/nothing");
  CHECK(refused.status == 0);
  CHECK(refused.phase == SF_HTTP_NOT_SENT);
  CHECK(refused.failure.message == "the test expects no GET /nothing");
  CHECK_FALSE(refused.failure.may_have_started());
  CHECK(web.host.http.unexpected() == std::vector<std::string>{"GET /nothing"});
}

TEST_CASE("an answer ends at its phase, and the error says whether it may have had an effect") {
  Web web;
  auto& http = web.host.http;
  http.expect("GET", "/a").answer(200, "x").fail(SF_HTTP_NOT_SENT, SF_TRANSPORT_LOST, "reset");
  http.expect("GET", "/b").answer(200, "x").fail(SF_HTTP_MAYBE_SENT, SF_TRANSPORT_LOST, "reset");
  http.expect("GET", "/c").answer(200, "x").fail(SF_HTTP_HEAD, SF_TRANSPORT_LOST, "reset");
  http.expect("GET", "/d").answer(200, "x").fail(SF_HTTP_BODY, SF_TRANSPORT_LOST, "reset");
  const auto a = web.ask("GET", "/a");
  CHECK((a.status == 0 && a.out.empty() && !a.failure.may_have_started()));
  const auto b = web.ask("GET", "/b");
  CHECK((b.status == 0 && b.out.empty() && b.failure.may_have_started()));
  const auto c = web.ask("GET", "/c");
  CHECK((c.status == 200 && c.out.empty() && c.failure.may_have_started()));
  const auto d = web.ask("GET", "/d");
  CHECK((d.status == 200 && d.out == "x" && d.failure.message == "reset"));
}

TEST_CASE("a body that is written to the stream is matched whole") {
  Web web;
  web.host.http.expect("PUT", "/file").with_body("content").answer(204);
  CHECK(web.ask("PUT", "/file", "content", SF_HTTP_STREAM_BODY).status == 204);
}

TEST_CASE("a handler takes the place of the script") {
  Web web;
  web.host.http.expect("GET", "/x");
  web.host.http.handler = [](const std::shared_ptr<Exchange>& e) { e->answer(418, e->target); };
  CHECK(web.ask("GET", "/x").out == "/x");
  CHECK(web.host.http.requests().size() == 1);
  CHECK(web.host.http.unused().size() == 1);
}
