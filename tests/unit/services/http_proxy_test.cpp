// Requests through a proxy, and its credentials, which nobody is told.
#include "http_tls_fixture.hpp"
#include "http_websocket_fixture.hpp"
#include "support/temp_dir.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

// "ada" and "pass:word" with what must be percent-encoded.
constexpr const char* kUser = "ada:p%61ss%3Aword@";
constexpr const char* kHeader = "Proxy-Authorization: Basic YWRhOnBhc3M6d29yZA==\r\n";

sf_status open_by(HttpBench& bench, const std::string& url, const std::string& proxy,
                  const std::string& ca = {}) {
  sf_http_client_options options{};
  options.proxy_url = plugin::to_str(proxy);
  options.ca_pem = plugin::to_str(ca);
  return bench.open(url, options);
}

std::string proxy_at(const Server& server) {
  return std::string("http://") + kUser + "127.0.0.1:" + server.port;
}

// In no form that there is of them.
void check_untold(const HttpBench& bench, const std::string& text) {
  const std::string all = text + bench.error + bench.bench.log();
  for (const char* secret : {"ada", "p%61ss", "pass:word", "YWRhOnBhc3M6d29yZA"})
    CHECK_THAT(all, !Catch::Contains(secret));
}

}  // namespace

TEST_CASE("http proxy: plain requests name the whole URL, and share a connection") {
  Server proxy;
  HttpBench bench;
  REQUIRE(open_by(bench, "http://box.test:81/v1", proxy_at(proxy)) == SF_OK);
  Ask ask;
  ask.target = "/x?y";
  Call& first = bench.send(ask);
  Peer peer = proxy.accept();
  CHECK(peer.head() == "GET http://box.test:81/v1/x?y HTTP/1.1\r\n" + std::string(kHeader) +
                           "Host: box.test:81\r\n\r\n");
  peer.send(answer("one"));
  REQUIRE(first.until_done());
  CHECK(first.body == "one");
  Call& second = bench.send({});
  CHECK_THAT(peer.head(), Catch::StartsWith("GET http://box.test:81/v1/ HTTP/1.1\r\n"));
  // Its own words are an answer as any other.
  peer.send("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
  REQUIRE(second.until_done());
  CHECK(second.status == 407);
  check_untold(bench, second.message);
}

TEST_CASE("http proxy: TLS goes through a tunnel, and the proxy's credentials stop there") {
  const Identity ca("");
  const Identity leaf("DNS:box.test", &ca);
  Server proxy;
  HttpBench bench;
  REQUIRE(open_by(bench, "https://box.test", proxy_at(proxy), ca.pem()) == SF_OK);
  Call& call = bench.send({});
  Peer peer = proxy.accept();
  CHECK(peer.head() ==
        "CONNECT box.test:443 HTTP/1.1\r\nHost: box.test:443\r\n" + std::string(kHeader) + "\r\n");
  // A length in it means nothing.
  peer.send("HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n");
  TlsPeer box(std::move(peer), leaf);
  REQUIRE(box.shaken);
  CHECK(box.read_to("\r\n\r\n") == "GET / HTTP/1.1\r\nHost: box.test\r\n\r\n");
  box.send(answer("hello"));
  REQUIRE(call.until_done());
  CHECK(call.body == "hello");
  Call& next = bench.send({});
  CHECK(box.read_to("\r\n\r\n") == "GET / HTTP/1.1\r\nHost: box.test\r\n\r\n");
  box.send(answer("again"));
  REQUIRE(next.until_done());
  CHECK(next.body == "again");
}

TEST_CASE("http proxy: a tunnel that is refused is a typed error without credentials") {
  struct Case {
    std::string answer;
    sf_status code;
    std::string message;
  };
  const auto one = GENERATE(values<Case>({
      {"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 9\r\n\r\n",
       SF_UNAUTHENTICATED, "the proxy answered 407"},
      {"HTTP/1.1 403 No\r\n\r\n", SF_FORBIDDEN, "the proxy answered 403"},
      {"HTTP/1.1 502 No\r\n\r\n", SF_TRANSPORT_LOST, "the proxy answered 502"},
      {"HTTP/1.1 101 What\r\n\r\n", SF_TRANSPORT_LOST, "the proxy answered 101"},
      {"SSH-2.0-x\r\n\r\n", SF_TRANSPORT_LOST, "the answer of the proxy is not HTTP/1.1"},
      {"HTTP/1.1 200 OK\r\n\r\nmore", SF_TRANSPORT_LOST, "the proxy says more than its answer"},
      {"", SF_TRANSPORT_LOST, "the proxy has closed the connection"},
  }));
  Server proxy;
  HttpBench bench;
  REQUIRE(open_by(bench, "https://box.test", proxy_at(proxy)) == SF_OK);
  Call& call = bench.send({});
  Peer peer = proxy.accept_request();
  peer.send(one.answer);
  peer.shutdown();
  REQUIRE(call.until_done());
  CHECK(call.code == one.code);
  CHECK(call.phase == SF_HTTP_NOT_CONNECTED);
  CHECK_FALSE(call.may_have_started);
  CHECK_THAT(call.message,
             Catch::StartsWith("cannot connect to box.test:443 by the proxy 127.0.0.1:" +
                               proxy.port + ": " + one.message));
  check_untold(bench, call.message);
}

TEST_CASE("http proxy: nobody there, and one that says nothing") {
  HttpBench bench;
  auto proxy = std::make_unique<Server>();
  sf_http_client_options options{};
  const std::string url = proxy_at(*proxy);
  options.proxy_url = plugin::to_str(url);
  SECTION("nobody") {
    proxy.reset();
    REQUIRE(bench.open("https://box.test", options) == SF_OK);
    Call& call = bench.send({});
    REQUIRE(call.until_done());
    CHECK(call.code == SF_TRANSPORT_LOST);
    check_untold(bench, call.message);
  }
  SECTION("nothing") {
    options.connect_timeout_ms = 50;
    REQUIRE(bench.open("https://box.test", options) == SF_OK);
    Call& call = bench.send({});
    Peer peer = proxy->accept();
    REQUIRE(call.until_done());
    CHECK(call.code == SF_TIMEOUT);
    CHECK(call.phase == SF_HTTP_NOT_CONNECTED);
    peer.head();
    CHECK(peer.read_all().empty());  // closed
  }
  SECTION("nothing, until the request is cancelled") {
    REQUIRE(bench.open("https://box.test", options) == SF_OK);
    Call& call = bench.send({});
    Peer peer = proxy->accept();
    peer.head();
    call.stream->vtbl->cancel(call.stream);
    REQUIRE(call.until_done());
    CHECK(call.code == SF_CANCELLED);
    CHECK(peer.read_all().empty());
  }
}

TEST_CASE("http proxy: what changes the protocol has a tunnel of its own") {
  Server proxy;
  HttpBench bench;
  REQUIRE(open_by(bench, "http://box.test", "http://127.0.0.1:" + proxy.port + "/") == SF_OK);
  Ask ask;
  ask.flags = SF_HTTP_WEBSOCKET;
  Call& call = bench.send(ask);
  Peer peer = proxy.accept();
  CHECK(peer.head() == "CONNECT box.test:80 HTTP/1.1\r\nHost: box.test:80\r\n\r\n");
  peer.send("HTTP/1.1 200 OK\r\n\r\n");
  const std::string head = peer.head();
  CHECK_THAT(head, Catch::StartsWith("GET / HTTP/1.1\r\n"));
  SECTION("accepted") {
    peer.send(switching(head) + frame(0x81, "hi"));
    REQUIRE(call.until([&] { return !call.messages.empty(); }));
  }
  SECTION("refused, and not kept for others") {
    peer.send(answer("no"));
    REQUIRE(call.until_done());
    CHECK(call.status == 200);
    CHECK(peer.read_all().empty());
    Call& next = bench.send({});
    Peer other = proxy.accept();
    CHECK_THAT(other.head(), Catch::StartsWith("GET http://box.test/ HTTP/1.1\r\n"));
    other.send(answer("ok"));
    REQUIRE(next.until_done());
  }
}

TEST_CASE("http proxy: a URL that is none is refused, and not told") {
  HttpBench bench;
  const std::string url = GENERATE(values<std::string>(
      {"https://ada:secret@proxy", "socks5://ada:secret@proxy", "ada:secret@proxy:3128",
       "http://ada:secret@", "http://ada:secret@proxy:0", "http://ada:secret@proxy:x",
       "http://ada:secret@proxy/path", "http://ada:secret%@proxy", "http://ada:secret%4@proxy",
       "http://a%3Ada:secret@proxy", "http://ada:secret@pro xy", "http://ada:secret\r\n@@x y"}));
  INFO(url);
  CHECK(open_by(bench, "https://box.test", url) == SF_INVALID);
  CHECK_THAT(bench.error, Catch::StartsWith("the URL of a proxy "));
  CHECK_THAT(bench.error, !Catch::Contains("secret") && !Catch::Contains("ada"));
}

TEST_CASE("http proxy: not for unix sockets") {
  HttpBench bench;
  CHECK(open_by(bench, "unix:///run/x", "http://proxy") == SF_INVALID);
}
