// Connections of a client: kept, shared, replaced, and raw after an upgrade.
#include <thread>

#include "http_fixture.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

void serve(Peer& peer, Call& call, const std::string& body = "ok") {
  peer.head();
  peer.send(answer(body));
  REQUIRE(call.until_done());
  CHECK(call.code == SF_OK);
  CHECK(call.body == body);
}

}  // namespace

TEST_CASE("http pool: one connection serves one request after the other") {
  Server server;
  HttpBench bench(server.url);
  Call& first = bench.send({});
  Peer peer = server.accept();
  serve(peer, first, "1");
  for (int i = 2; i < 6; ++i)
    serve(peer, bench.send({}), std::to_string(i));
  CHECK_FALSE(server.somebody_waits());
  // What is kept ends with the client.
  bench.release();
  CHECK(peer.read_all().empty());
}

TEST_CASE("http pool: no more connections than allowed, and those who wait come in their order") {
  Server server;
  HttpBench bench(server.url, 2);
  Ask ask;
  ask.target = "/1";
  Call& one = bench.send(ask);
  Peer a = server.accept();
  CHECK_THAT(a.head(), Catch::StartsWith("GET /1 "));
  ask.target = "/2";
  Call& two = bench.send(ask);
  Peer b = server.accept();
  CHECK_THAT(b.head(), Catch::StartsWith("GET /2 "));
  ask.target = "/3";
  Call& three = bench.send(ask);
  ask.target = "/4";
  Call& four = bench.send(ask);
  bench.bench.settle(bench.lane);
  CHECK_FALSE(server.somebody_waits());
  b.send(answer("2"));
  REQUIRE(two.until_done());
  CHECK_THAT(b.head(), Catch::StartsWith("GET /3 "));
  // A connection that cannot be kept makes room for another one.
  a.send(answer("1", "Connection: close\r\n"));
  REQUIRE(one.until_done());
  CHECK(a.read_all().empty());
  Peer c = server.accept();
  CHECK_THAT(c.head(), Catch::StartsWith("GET /4 "));
  b.send(answer("3"));
  c.send(answer("4"));
  REQUIRE(three.until_done());
  REQUIRE(four.until_done());
  CHECK(four.body == "4");
}

TEST_CASE("http pool: what is not clean is not used again") {
  Server server;
  HttpBench bench(server.url);
  Call& first = bench.send({});
  Peer peer = server.accept_request();
  SECTION("the server says so") {
    peer.send(answer("x", "Connection: close\r\n"));
  }
  SECTION("an older server") {
    peer.send("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx");
  }
  SECTION("more than the answer") {
    peer.send(answer("x") + answer("not asked for"));
  }
  SECTION("it keeps connections for too short") {
    peer.send(answer("x", "Keep-Alive: timeout=1\r\n"));
  }
  REQUIRE(first.until_done());
  CHECK(first.body == "x");
  CHECK(peer.read_all().empty());
  Call& second = bench.send({});
  Peer other = server.accept();
  serve(other, second);
}

TEST_CASE("http pool: bytes that come while nothing was asked are no answer") {
  Server server;
  HttpBench bench(server.url);
  Call& first = bench.send({});
  Peer peer = server.accept();
  serve(peer, first);
  peer.send(answer("smuggled"));
  CHECK(peer.read_all().empty());  // closed
  Call& second = bench.send({});
  Peer other = server.accept();
  serve(other, second, "asked for");
}

TEST_CASE("http pool: a kept connection that the server has closed is not used") {
  Server server;
  HttpBench bench(server.url);
  for (int i = 0; i < 20; ++i) {
    Call& call = bench.send({});
    Peer peer = server.accept();
    serve(peer, call);
    if (i % 2 == 0) {
      peer.close();
    } else {
      peer.reset();
    }
  }
}

TEST_CASE("http pool: what may have been sent is not sent again") {
  Server server;
  HttpBench bench(server.url);
  Call& first = bench.send({});
  Peer peer = server.accept();
  serve(peer, first);
  Call& second = bench.send({});
  peer.head();
  peer.close();
  REQUIRE(second.until_done());
  CHECK(second.code == SF_TRANSPORT_LOST);
  CHECK(second.phase == SF_HTTP_MAYBE_SENT);
  CHECK(second.may_have_started);
  CHECK_FALSE(server.somebody_waits());
}

TEST_CASE("http pool: what must not run twice gets a connection of its own") {
  Server server;
  HttpBench bench(server.url, 2);
  Call& first = bench.send({});
  Peer peer = server.accept();
  serve(peer, first);
  Ask ask;
  ask.flags = SF_HTTP_FRESH_CONNECTION;
  Call& second = bench.send(ask);
  Peer other = server.accept();
  serve(other, second);
  // The limit holds for them too: what is idle makes room.
  Call& third = bench.send(ask);
  CHECK(peer.read_all().empty());
  Peer more = server.accept();
  serve(more, third);
}

TEST_CASE("http pool: running requests outlive the client") {
  Server server;
  HttpBench bench(server.url);
  Call& call = bench.send({});
  Peer peer = server.accept_request();
  bench.release();
  peer.send(answer("late"));
  REQUIRE(call.until_done());
  CHECK(call.body == "late");
  CHECK(peer.read_all().empty());
}

TEST_CASE("http pool: many requests at once") {
  Server server;
  HttpBench bench;
  const int most = GENERATE(1, 2, 3);
  REQUIRE(bench.open(server.url, static_cast<std::uint32_t>(most)) == SF_OK);
  std::vector<Call*> all;
  for (int i = 0; i < 60; ++i)
    all.push_back(&bench.send({}));
  std::vector<Peer> peers;
  for (int i = 0; i < most; ++i)
    peers.push_back(server.accept());
  std::vector<std::thread> servers;
  for (auto& peer : peers) {
    servers.emplace_back([&peer] {
      while (peer.head() != "<end>")
        peer.send(answer("x"));
    });
  }
  for (Call* call : all) {
    CHECK(call->until_done());
    CHECK(call->code == SF_OK);
  }
  CHECK_FALSE(server.somebody_waits());
  bench.release();
  for (auto& thread : servers)
    thread.join();
}

TEST_CASE("http upgrade: raw bytes both ways, with those that came with the head") {
  Server server;
  HttpBench bench(server.url, 1);
  Ask ask;
  ask.method = "POST";
  ask.body = "{}";
  ask.flags = SF_HTTP_UPGRADE;
  ask.headers = {{"Connection", "Upgrade"}, {"Upgrade", "tcp"}};
  Call& call = bench.send(ask);
  // Before the answer nothing is taken.
  CHECK(bench.write(call, "early") == std::pair(sf_status{SF_OK}, std::size_t{0}));
  Peer peer = server.accept_request();
  CHECK(peer.read(2) == "{}");
  SECTION("101") {
    peer.send("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nfirst");
  }
  SECTION("200 of a server that only hijacks") {
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\nfirst");
  }
  REQUIRE(call.until([&] { return call.body == "first" && call.writables == 1; }));
  CHECK(call.upgraded == 1);
  CHECK(bench.write(call, "input") == std::pair(sf_status{SF_OK}, std::size_t{5}));
  CHECK(peer.read(5) == "input");
  CHECK(bench.shutdown(call) == SF_OK);
  CHECK(peer.read_all().empty());  // half closed
  CHECK(bench.write(call, "x").first == SF_CONFLICT);
  peer.send(", then the rest");
  peer.close();
  REQUIRE(call.until_done());
  CHECK(call.code == SF_OK);
  CHECK(call.body == "first, then the rest");
  CHECK(call.phase == SF_HTTP_BODY);
  Call& next = bench.send({});
  Peer other = server.accept();
  serve(other, next);
}

TEST_CASE("http upgrade: refused, it is an ordinary answer") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.flags = SF_HTTP_UPGRADE;
  Call& call = bench.send(ask);
  CHECK(bench.write(call, "early").second == 0);
  Peer peer = server.accept_request();
  SECTION("an error") {
    peer.send("HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nno");
  }
  SECTION("a 200 with a length") {
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno");
  }
  SECTION("a 200 in chunks") {
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n");
  }
  REQUIRE(call.until_done());
  CHECK(call.code == SF_OK);
  CHECK(call.upgraded == 0);
  CHECK(call.body == "no");
  CHECK(bench.write(call, "x").first == SF_CONFLICT);
}

TEST_CASE("http upgrade: input that the server does not read waits, output needs credit") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.flags = SF_HTTP_UPGRADE;
  ask.window = 4;
  Call& call = bench.send(ask, false);
  Peer peer = server.accept_request();
  peer.send("HTTP/1.1 101 Switching Protocols\r\n\r\n0123456789");
  REQUIRE(call.until([&] { return call.body == "0123" && call.writables > 0; }));
  const std::string piece(1U << 20, 'x');
  std::size_t total = 0;
  for (bool full = false; !full;) {
    const int before = call.writables_so_far();
    const auto [status, accepted] = bench.write(call, piece);
    REQUIRE(status == SF_OK);
    total += accepted;
    REQUIRE(total < (64U << 20));
    bench.bench.settle(bench.lane);
    full = accepted == 0 && call.writables_so_far() == before;
  }
  CHECK(call.body == "0123");
  const int before = call.writables_so_far();
  CHECK(peer.read(total) == std::string(total, 'x'));
  REQUIRE(call.until([&] { return call.writables > before; }));
  SECTION("granted") {
    peer.close();
    call.stream->vtbl->grant(call.stream, 100);
    REQUIRE(call.until_done());
    CHECK(call.code == SF_OK);
    CHECK(call.body == "0123456789");
  }
  SECTION("cancelled") {
    call.stream->vtbl->cancel(call.stream);
    REQUIRE(call.until_done());
    CHECK(call.code == SF_CANCELLED);
    CHECK(call.dropped == 6);
    CHECK(peer.read_all().empty());
  }
  SECTION("released") {
    call.stream->vtbl->release(std::exchange(call.stream, nullptr));
    peer.send("more that nobody wants");
    peer.close();
    REQUIRE(call.until_done());
    CHECK(call.delivered == 4);
    CHECK(call.dropped == 28);
  }
}

TEST_CASE("http: a manifest that does not name the service gets none") {
  Bench bench;
  sf_host* host = &bench.plugin->host;
  CHECK(host->vtbl->service(host, str(SF_SERVICE_HTTP)) == nullptr);
}

TEST_CASE("http: calls off the lane are refused and reported") {
  Server server;
  HttpBench bench(server.url);
  Call& call = bench.send({});
  std::size_t accepted = 0;
  CHECK(call.stream->vtbl->write(call.stream, {nullptr, 0}, 0, &accepted, nullptr) == SF_INVALID);
  CHECK(bench.bench.faults(plugin::Fault::off_lane) == 1);
}

TEST_CASE("http: what still runs when the host ends comes to its end") {
  Server server;
  HttpBench bench;
  auto runtime = std::make_unique<Runtime>();
  bench.bench.services = std::make_shared<HostServices>();
  bench.bench.services->runtime = runtime.get();
  bench.bench.plugin->host.attach(bench.bench.services);
  bench.lane = runtime->make_lane();
  const plugin::LaneRef object(*bench.bench.plugin, bench.lane);
  sf_http_client_options options{};
  options.struct_size = sizeof(options);
  options.base_url = plugin::to_str(server.url);
  REQUIRE(bench.http->client_create(&bench.bench.plugin->host, object.get(), &options,
                                    &bench.client, nullptr) == SF_OK);
  Call kept(bench.lane, true);
  REQUIRE(bench.begin({}, kept) == SF_OK);
  Peer idle = server.accept();
  serve(idle, kept);
  Call first(bench.lane, true);
  REQUIRE(bench.begin({}, first) == SF_OK);
  idle.head();
  Call second(bench.lane, true);
  REQUIRE(bench.begin({}, second) == SF_OK);
  bench.bench.plugin->host.attach(nullptr);
  runtime.reset();
  for (Call* call : {&first, &second}) {
    CHECK(call->until_done());
    CHECK(call->code == SF_CANCELLED);
    call->stream->vtbl->cancel(call->stream);
    call->stream->vtbl->release(call->stream);
  }
  kept.stream->vtbl->release(kept.stream);
  CHECK(idle.read_all().empty());
  bench.http->client_release(std::exchange(bench.client, nullptr));
  bench.lane = bench.bench.sandbox_lane;
}
