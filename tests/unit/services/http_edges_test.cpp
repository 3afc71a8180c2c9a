// What requests meet at their edges: sockets and their options, names, bounds, and the deadline of
// all.
#include <filesystem>

#include <netdb.h>
#include <netinet/tcp.h>

#include "http/client.hpp"
#include "http_fixture.hpp"
#include "support/temp_dir.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

unsigned port_of(const sockaddr_storage& at) {
  return ntohs(reinterpret_cast<const sockaddr_in&>(at).sin_port);
}

// The socket of this process that a peer is connected to.
int other_end(const Peer& peer) {
  sockaddr_storage far{};
  socklen_t size = sizeof(far);
  REQUIRE(::getpeername(peer.socket(), reinterpret_cast<sockaddr*>(&far), &size) == 0);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    sockaddr_storage near{};
    size = sizeof(near);
    const bool known = ::getsockname(fd, reinterpret_cast<sockaddr*>(&near), &size) == 0;
    if (known && near.ss_family == AF_INET && port_of(near) == port_of(far)) return fd;
  }
  return -1;
}

// Whether the name has an address that is tried before 127.0.0.1.
bool first_is_another(const char* name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name, nullptr, &hints, &found) != 0) return false;
  const bool another = found->ai_family == AF_INET6;
  ::freeaddrinfo(found);
  return another;
}

// By its name; the server listens at 127.0.0.1.
void ask_localhost() {
  Server server;
  HttpBench bench;
  REQUIRE(bench.open("http://localhost:" + server.port) == SF_OK);
  Call& call = bench.send({});
  Peer peer = server.accept();
  CHECK_THAT(peer.head(), Catch::Contains("Host: localhost:" + server.port));
  peer.send(answer("x"));
  REQUIRE(call.until_done());
  CHECK(call.body == "x");
}

int option(int socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof(value);
  REQUIRE(::getsockopt(socket, level, name, &value, &size) == 0);
  return value;
}

}  // namespace

TEST_CASE("http: keepalive and user timeout are set on the socket") {
  Server server;
  HttpBench bench;
  sf_http_client_options options{};
  bool given = true;
  SECTION("given") {
    options.keepalive_ms = 30'000;
    options.user_timeout_ms = 7000;
  }
  SECTION("not given") {
    given = false;
  }
  REQUIRE(bench.open(server.url, options) == SF_OK);
  bench.send({});
  Peer peer = server.accept_request();
  const int socket = other_end(peer);
  REQUIRE(socket >= 0);
  CHECK(option(socket, IPPROTO_TCP, TCP_NODELAY) != 0);
  CHECK((option(socket, SOL_SOCKET, SO_KEEPALIVE) != 0) == given);
  CHECK(option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT) == (given ? 7000 : 0));
  if (!given) return;
  CHECK(option(socket, IPPROTO_TCP, TCP_KEEPIDLE) == 30);
  CHECK(option(socket, IPPROTO_TCP, TCP_KEEPINTVL) == 10);
  CHECK(option(socket, IPPROTO_TCP, TCP_KEEPCNT) == 3);
}

TEST_CASE("http: a name that there is not") {
  HttpBench bench;
  // Too long for any name server to be asked.
  const std::string name(64, 'x');
  REQUIRE(bench.open("http://" + name + ".test") == SF_OK);
  Call& call = bench.send({});
  REQUIRE(call.until_done());
  CHECK(call.code == SF_TRANSPORT_LOST);
  CHECK(call.phase == SF_HTTP_NOT_CONNECTED);
  CHECK_FALSE(call.may_have_started);
  CHECK_THAT(call.message, Catch::StartsWith("cannot connect to " + name + ".test:80: ") &&
                               !Catch::EndsWith(": "));
}

TEST_CASE("http: a name") {
  ask_localhost();
}

TEST_CASE("http: a name with several addresses, of which the first does not listen") {
  if (!first_is_another("localhost")) {
    WARN("SKIPPED: here localhost has no address before 127.0.0.1");
    return;
  }
  ask_localhost();
}

TEST_CASE("http: IPv6") {
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  at.sin6_addr = in6addr_loopback;
  socklen_t size = sizeof(at);
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (socket < 0 || ::bind(socket, address, size) != 0 || ::listen(socket, 4) != 0) {
    if (socket >= 0) ::close(socket);
    WARN("SKIPPED: this machine has no IPv6");
    return;
  }
  REQUIRE(::getsockname(socket, address, &size) == 0);
  Server server(socket);
  const std::string name = "[::1]:" + std::to_string(ntohs(at.sin6_port));
  HttpBench bench;
  REQUIRE(bench.open("http://" + name) == SF_OK);
  Call& call = bench.send({});
  Peer peer = server.accept();
  CHECK_THAT(peer.head(), Catch::Contains("Host: " + name + "\r\n"));
  peer.send(answer("six"));
  REQUIRE(call.until_done());
  CHECK(call.body == "six");
}

TEST_CASE("http: no more requests wait for a connection than the bound, not even within a task") {
  Server server;
  HttpBench bench(server.url, 1);
  Call& first = bench.send({});
  Peer peer = server.accept_request();
  std::size_t taken = 0;
  const sf_status last = bench.bench.on(bench.lane, [&] {
    for (;; ++taken) {
      auto call = std::make_unique<Call>(bench.lane, true);
      const sf_status status = bench.begin_here({}, *call);
      if (status != SF_OK) return status;
      bench.calls.push_back(std::move(call));
      if (taken > http::Client::kMaxWaiting) return status;
    }
  });
  CHECK(taken == http::Client::kMaxWaiting);
  CHECK(last == SF_RATE_LIMITED);
  CHECK_THAT(bench.error, Catch::Contains("too many requests wait"));
  // One ends, and there is room for one.
  peer.send(answer("x"));
  REQUIRE(first.until_done());
  peer.head();
  bench.send({});
}

TEST_CASE("http: a kept connection that takes no byte is replaced, and the request sent once") {
  const TempDir folder;
  Server server((folder.path() / "s").string());
  HttpBench bench(server.url);
  Call& first = bench.send({});
  Peer peer = server.accept_request();
  peer.send(answer("1"));
  REQUIRE(first.until_done());
  // It looks alive to who waits for what it says: only the first write fails.
  REQUIRE(::shutdown(peer.socket(), SHUT_RD) == 0);
  Ask ask;
  ask.method = "POST";
  ask.body = "once";
  Call& second = bench.send(ask);
  Peer other = server.accept();
  CHECK_THAT(other.head(), Catch::StartsWith("POST / "));
  CHECK(other.read(4) == "once");
  other.send(answer("2"));
  REQUIRE(second.until_done());
  CHECK(second.code == SF_OK);
  CHECK(second.body == "2");
}

TEST_CASE("http: the deadline of all of a request") {
  Server server;
  HttpBench bench(server.url, 1);
  Ask ask;
  ask.total_timeout_ms = 1000;
  SECTION("while it waits for a connection") {
    bench.send({});
    Peer peer = server.accept();
    Call& call = bench.send(ask);
    REQUIRE(call.until_done());
    CHECK(call.code == SF_TIMEOUT);
    CHECK(call.phase == SF_HTTP_NOT_CONNECTED);
    CHECK_FALSE(call.may_have_started);
    CHECK_THAT(call.message, Catch::EndsWith("had no connection free in time"));
  }
  SECTION("while it waits for the head") {
    Call& call = bench.send(ask);
    Peer peer = server.accept();
    REQUIRE(call.until_done());
    CHECK(call.code == SF_TIMEOUT);
    CHECK(call.phase == SF_HTTP_MAYBE_SENT);
    CHECK(call.may_have_started);
    CHECK_THAT(call.message, Catch::EndsWith("did not answer in time"));
  }
  SECTION("in the body, although bytes come") {
    Call& call = bench.send(ask);
    Peer peer = server.accept_request();
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    try {
      for (;;)
        peer.send("x");
    } catch (const std::runtime_error&) {
      // The client has gone.
    }
    REQUIRE(call.until_done());
    CHECK(call.code == SF_TIMEOUT);
    CHECK(call.phase == SF_HTTP_BODY);
    CHECK_THAT(call.message, Catch::EndsWith("did not come to an end in time"));
  }
  SECTION("without credit, when the other end is not to blame") {
    ask.window = 0;
    Call& call = bench.send(ask, false);
    Peer peer = server.accept_request();
    peer.send(answer("undelivered"));
    REQUIRE(call.until_done());
    CHECK(call.code == SF_TIMEOUT);
    CHECK(call.phase == SF_HTTP_HEAD);
    CHECK(call.dropped == 11);
  }
  SECTION("not passed") {
    ask.total_timeout_ms = 60'000;
    Call& call = bench.send(ask);
    Peer peer = server.accept_request();
    peer.send(answer("in time"));
    REQUIRE(call.until_done());
    CHECK(call.code == SF_OK);
  }
}

TEST_CASE("http: a plugin of an older header has no later members, and their defaults") {
  Server server;
  HttpBench bench;
  sf_http_client_options options{};
  options.struct_size = offsetof(sf_http_client_options, proxy_url);
  options.base_url = plugin::to_str(server.url);
  options.proxy_url = {"not looked at", 13};
  REQUIRE(bench.http->client_create(&bench.bench.plugin->host, bench.lane_object.get(), &options,
                                    &bench.client, nullptr) == SF_OK);
}
