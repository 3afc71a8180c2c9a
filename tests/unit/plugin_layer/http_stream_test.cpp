// Answers that are streams, and raw connections, read and written by coroutines.
#include <sandforge/plugin/http_stream.hpp>

#include <catch2/catch.hpp>

#include "unit/plugin_layer/coroutine_fixture.hpp"

using namespace sandforge::plugin;
using namespace sandforge::test;
namespace testing = sandforge::testing;

namespace {

// A client on the lane of a bench, for coroutines that run there.
class Wire {
 public:
  Bench bench;
  std::unique_ptr<HttpClient> client;
  Wire() : client(std::make_unique<HttpClient>(bench.lane(), HttpOptions("http://box"))) {}
  // One end for each test: nothing is left.
  void close() {
    bench.run<void>([this] { return drop(*this); });
    CHECK(testing::HttpService::live_clients == 0);
    CHECK(testing::Stream::live == 0);
  }

 private:
  static Task<void> drop(Wire& wire) {
    wire.client.reset();
    co_return;
  }
};

Task<std::string> talk(Wire& wire) {
  HttpRequest request("POST", "/attach", "{}");
  HttpStream stream = co_await HttpStream::open(*wire.client, request, SF_HTTP_UPGRADE);
  std::string said = std::to_string(stream.status()) + (stream.upgraded() ? " up " : " not up ");
  said += std::string(stream.header("x-kind")) + " ";
  co_await stream.write_all(std::string(100, 'w'));
  stream.shutdown_write();
  for (;;) {
    const std::optional<Output> piece = co_await stream.read_some();
    if (!piece) co_return said;
    said += piece->data;
  }
}

Task<std::size_t> read_all(Wire& wire) {
  HttpRequest request("GET", "/long");
  HttpStream stream = co_await HttpStream::open(*wire.client, request);
  std::size_t size = 0;
  for (;;) {
    const std::optional<Output> piece = co_await stream.read_some();
    if (!piece) co_return size;
    size += piece->data.size();
  }
}

Task<std::string> read_rest(Wire& wire, std::size_t most) {
  HttpRequest request("GET", "/rest");
  HttpStream stream = co_await HttpStream::open(*wire.client, request, SF_HTTP_UPGRADE);
  const HttpAnswer answer = co_await stream.rest(most);
  co_return std::to_string(answer.status) + " " + answer.body + (stream.upgraded() ? "up" : "");
}

Task<void> open_and_drop(Wire& wire) {
  HttpRequest request("GET", "/drop");
  HttpStream stream = co_await HttpStream::open(*wire.client, request, SF_HTTP_UPGRADE);
}

Task<std::string> upload(Wire& wire) {
  HttpRequest request("POST", "/files");
  HttpStream stream = HttpStream::upload(*wire.client, request);
  co_await stream.write_all("first ");
  co_await stream.write_all("second");
  stream.shutdown_write();
  co_await stream.answered();
  const HttpAnswer answer = co_await stream.rest();
  co_return std::to_string(answer.status) + " " + answer.body;
}

}  // namespace

TEST_CASE("a raw connection is written to, closed on one side and read to its end") {
  Wire wire;
  std::string written;
  int writes = 0;
  wire.bench.host.http.handler = [&](const std::shared_ptr<testing::Exchange>& exchange) {
    CHECK(exchange->flags == SF_HTTP_UPGRADE);
    CHECK(exchange->body == "{}");
    // Takes ten bytes at a time, none of them inside of a call that was short.
    exchange->stream->on_write = [&, exchange](std::string_view bytes, std::uint32_t) {
      const std::size_t taken = ++writes % 2 == 0 ? std::min<std::size_t>(bytes.size(), 10) : 0;
      written += bytes.substr(0, taken);
      exchange->stream->writable();
      return taken;
    };
    exchange->stream->on_shutdown = [exchange] {
      exchange->send("good ");
      exchange->send("bye");
      exchange->end();
    };
    exchange->respond(101, true, {}, {{"X-Kind", "raw"}});
  };
  CHECK(wire.bench.run<std::string>([&] { return talk(wire); }).value == "101 up raw good bye");
  CHECK(written == std::string(100, 'w'));
  wire.close();
}

TEST_CASE("a long answer is read under credit: not more than the window waits") {
  Wire wire;
  wire.bench.host.http.expect("GET", "/long").answer(200, std::string(1'000'000, 'z'));
  CHECK(wire.bench.run<std::size_t>([&] { return read_all(wire); }).value == 1'000'000);
  wire.close();
}

TEST_CASE("an upgrade that is refused is an ordinary answer") {
  Wire wire;
  auto& http = wire.bench.host.http;
  http.expect("GET", "/rest").answer(409, "paused");
  CHECK(wire.bench.run<std::string>([&] { return read_rest(wire, 100); }).value == "409 paused");
  http.expect("GET", "/rest").upgrade("raw ");
  CHECK(wire.bench.run<std::string>([&] { return read_rest(wire, 100); }).value == "101 raw up");
  http.expect("GET", "/rest").answer(500, "too long");
  const auto refused = wire.bench.run<std::string>([&] { return read_rest(wire, 7); });
  CHECK(refused.code == Code::no_space);
  CHECK(refused.message == "the answer is longer than 7 bytes");
  wire.close();
}

TEST_CASE("a body of unknown length is written before the answer is waited for") {
  Wire wire;
  auto& http = wire.bench.host.http;
  http.expect("POST", "/files").with_body("first second").answer(201, "made");
  CHECK(wire.bench.run<std::string>([&] { return upload(wire); }).value == "201 made");
  CHECK(http.requests().at(0).flags == SF_HTTP_STREAM_BODY);
  http.expect("POST", "/files").fail(SF_HTTP_MAYBE_SENT, SF_TRANSPORT_LOST, "reset");
  CHECK(wire.bench.run<std::string>([&] { return upload(wire); }).code == Code::transport_lost);
  wire.close();
}

TEST_CASE("an error before the head, and one in the middle, are the errors of the host") {
  Wire wire;
  auto& http = wire.bench.host.http;
  http.expect("GET", "/long").fail(SF_HTTP_NOT_CONNECTED, SF_TRANSPORT_LOST, "refused");
  const auto early = wire.bench.run<std::size_t>([&] { return read_all(wire); });
  CHECK(early.code == Code::transport_lost);
  CHECK(early.message == "refused");
  http.expect("GET", "/long").answer(200, "half").fail(SF_HTTP_BODY, SF_TRANSPORT_LOST, "reset");
  const auto late = wire.bench.run<std::size_t>([&] { return read_all(wire); });
  CHECK(late.code == Code::transport_lost);
  CHECK(late.message == "reset");
  wire.close();
}

TEST_CASE("a connection that is dropped is cancelled") {
  Wire wire;
  std::shared_ptr<testing::Exchange> seen;
  wire.bench.host.http.handler = [&](const std::shared_ptr<testing::Exchange>& exchange) {
    seen = exchange;
    exchange->respond(101, true);
  };
  CHECK_FALSE(wire.bench.run<void>([&] { return open_and_drop(wire); }).code);
  CHECK(wire.bench.wait([&] { return seen->stream->cancelled(); }));
  seen.reset();
  wire.close();
}

TEST_CASE("a stop cancels the request while it waits for its head") {
  Wire wire;
  wire.bench.host.http.handler = [&](const std::shared_ptr<testing::Exchange>&) {
    wire.bench.stop().request_stop();
  };
  CHECK(wire.bench.run<std::size_t>([&] { return read_all(wire); }).code == Code::cancelled);
  wire.bench.host.http.handler = nullptr;
  CHECK(wire.bench.run<std::size_t>([&] { return read_all(wire); }).code == Code::cancelled);
  CHECK(wire.bench.host.http.requests().size() == 1);
  wire.client.reset();
}
