// Requests over the http service, one at a time: what goes out, what comes back, how it ends.
#include "http_fixture.hpp"

#include "http/address.hpp"
#include "support/temp_dir.hpp"

using namespace sandforge;
using namespace sandforge::test;

TEST_CASE("http: a GET and its answer") {
  Server server;
  HttpBench bench(server.url + "/v1/");
  Ask ask;
  ask.target = "/boxes?a=b";
  ask.headers = {{"X-Key", "k"}};
  Call& call = bench.send(ask);
  Peer peer = server.accept();
  CHECK(peer.head() ==
        "GET /v1/boxes?a=b HTTP/1.1\r\nX-Key: k\r\nHost: " + server.url.substr(7) + "\r\n\r\n");
  peer.send(answer("hello", "X-Id: 7\r\n"));
  REQUIRE(call.until_done());
  CHECK(call.code == SF_OK);
  CHECK(call.status == 200);
  CHECK(call.headers == "Content-Length: 5\nX-Id: 7\n");
  CHECK(call.body == "hello");
  CHECK(call.phase == SF_HTTP_BODY);
  CHECK(call.delivered == 5);
  CHECK(call.dropped == 0);
}

TEST_CASE("http: a POST over a unix socket") {
  const TempDir folder;
  Server server((folder.path() / "s").string());
  HttpBench bench(server.url);
  Ask ask;
  ask.method = "POST";
  ask.body = R"({"a":1})";
  Call& call = bench.send(ask);
  Peer peer = server.accept();
  CHECK(peer.head() == "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 7\r\n\r\n");
  CHECK(peer.read(7) == ask.body);
  peer.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  REQUIRE(call.until_done());
  CHECK(call.status == 404);
  CHECK(call.code == SF_OK);
}

TEST_CASE("http: an answer that drips in, byte by byte") {
  Server server;
  HttpBench bench(server.url);
  Call& call = bench.send({});
  Peer peer = server.accept_request();
  const std::string all =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;ext=1\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\nX-Trailer: t\r\n\r\n";
  for (const char c : all)
    peer.send(std::string_view(&c, 1));
  REQUIRE(call.until_done());
  CHECK(call.code == SF_OK);
  CHECK(call.status == 200);
  CHECK(call.body == "hello world");
}

TEST_CASE("http: answers without a body, and one that the end of the connection ends") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  SECTION("HEAD") {
    ask.method = "HEAD";
    Call& call = bench.send(ask);
    Peer peer = server.accept_request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    REQUIRE(call.until_done());
    CHECK(call.code == SF_OK);
    CHECK(call.body.empty());
  }
  SECTION("204") {
    Call& call = bench.send(ask);
    Peer peer = server.accept_request();
    peer.send("HTTP/1.1 204 No Content\r\n\r\n");
    REQUIRE(call.until_done());
    CHECK(call.status == 204);
  }
  SECTION("to the end") {
    Call& call = bench.send(ask);
    Peer peer = server.accept_request();
    peer.send("HTTP/1.0 200 OK\r\n\r\nall of it");
    peer.close();
    REQUIRE(call.until_done());
    CHECK(call.code == SF_OK);
    CHECK(call.body == "all of it");
  }
}

TEST_CASE("http: what is cut off is an error that tells how far it came") {
  Server server;
  HttpBench bench(server.url);
  Call& call = bench.send({});
  Peer peer = server.accept_request();
  std::uint32_t phase = SF_HTTP_MAYBE_SENT;
  std::string body;
  SECTION("before the head") {}
  SECTION("in the head") {
    peer.send("HTTP/1.1 200 OK\r\nContent-Le");
  }
  SECTION("after the head") {
    phase = SF_HTTP_HEAD;
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
  }
  SECTION("in the body") {
    phase = SF_HTTP_BODY;
    body = "hel";
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel");
  }
  SECTION("in a chunk") {
    phase = SF_HTTP_BODY;
    body = "hel";
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
  }
  SECTION("before the last chunk") {
    phase = SF_HTTP_BODY;
    body = "hello";
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  }
  peer.close();
  REQUIRE(call.until_done());
  CHECK(call.code == SF_TRANSPORT_LOST);
  CHECK(call.phase == phase);
  CHECK(call.may_have_started);
  CHECK(call.body == body);
}

TEST_CASE("http: what is no answer, or could be read in two ways, is refused") {
  const std::string text = GENERATE(values<std::string>({
      "SSH-2.0-OpenSSH_9.2\r\n\r\n",
      "HTTP/2.0 200 OK\r\n\r\n",
      "HTTP/1.1 20 OK\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
      "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc",
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
      "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc",
      "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
  }));
  Server server;
  HttpBench bench(server.url);
  Call& call = bench.send({});
  Peer peer = server.accept_request();
  peer.send(text);
  INFO(text);
  REQUIRE(call.until_done());
  CHECK(call.code == SF_TRANSPORT_LOST);
  CHECK_THAT(call.message, Catch::Contains("is not HTTP/1.1"));
  CHECK(call.may_have_started);
  CHECK(peer.read_all().empty());  // closed, and not used again
}

TEST_CASE("http: heads, headers and lines have their limits") {
  Server server;
  HttpBench bench(server.url);
  Call& call = bench.send({});
  Peer peer = server.accept_request();
  std::string text = "HTTP/1.1 200 OK\r\n";
  SECTION("a head without end") {
    text += "X: ";
    text.append(200'000, 'x');
  }
  SECTION("a start line without end") {
    text = "HTTP/1.1 200 " + std::string(200'000, 'x');
  }
  SECTION("too many headers") {
    for (int i = 0; i < 300; ++i)
      text += "X: y\r\n";
    text += "\r\n";
  }
  SECTION("a chunk line without end") {
    text += "Transfer-Encoding: chunked\r\n\r\n5;" + std::string(300'000, 'x');
  }
  SECTION("a trailer without end") {
    text += "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(300'000, 'x');
  }
  SECTION("informational heads without end") {
    text.clear();
    for (int i = 0; i < 100; ++i)
      text += "HTTP/1.1 103 Early Hints\r\n\r\n";
  }
  try {
    peer.send(text);
  } catch (const std::runtime_error&) {
    // The client has seen enough.
  }
  REQUIRE(call.until_done());
  CHECK(call.code == SF_TRANSPORT_LOST);
  CHECK_THAT(call.message, Catch::Contains("is not HTTP/1.1"));
}

TEST_CASE("http: nothing listens, and no such socket") {
  HttpBench bench;
  std::string url;
  const TempDir folder;
  SECTION("tcp") {
    Server server;
    url = server.url;
  }
  SECTION("unix") {
    url = "unix://" + (folder.path() / "none").string();
  }
  REQUIRE(bench.open(url) == SF_OK);
  Call& call = bench.send({});
  REQUIRE(call.until_done());
  CHECK(call.code == SF_TRANSPORT_LOST);
  CHECK(call.phase == SF_HTTP_NOT_CONNECTED);
  CHECK_FALSE(call.may_have_started);
  CHECK_THAT(call.message, Catch::StartsWith("cannot connect to "));
}

TEST_CASE("http: without credit nothing is delivered, and the end is seen") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.window = 3;
  Call& call = bench.send(ask, false);
  Peer peer = server.accept_request();
  peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n");
  REQUIRE(call.until([&] { return call.body == "abc"; }));
  bench.bench.settle(bench.lane);
  CHECK(call.body == "abc");
  CHECK_FALSE(call.done);
  SECTION("exactly the rest is granted") {
    call.stream->vtbl->grant(call.stream, 3);
    REQUIRE(call.until_done());
    CHECK(call.code == SF_OK);
    CHECK(call.body == "abcdef");
    CHECK(call.delivered == 6);
  }
  SECTION("cancel drops and counts the rest") {
    call.stream->vtbl->cancel(call.stream);
    REQUIRE(call.until_done());
    CHECK(call.code == SF_CANCELLED);
    CHECK(call.delivered == 3);
    CHECK(call.dropped == 3);
    CHECK(call.phase == SF_HTTP_BODY);
    CHECK(call.may_have_started);
  }
  SECTION("released, it drops the rest") {
    call.stream->vtbl->release(std::exchange(call.stream, nullptr));
    REQUIRE(call.until_done());
    CHECK(call.code == SF_OK);
    CHECK(call.delivered == 3);
    CHECK(call.dropped == 3);
  }
}

TEST_CASE("http: a long answer is held back by the consumer") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.window = 1000;
  Call& call = bench.send(ask, false);
  Peer peer = server.accept_request();
  constexpr std::size_t size = 32U << 20;
  peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n");
  // All that the kernel and the client take while nothing is granted.
  const std::string piece(65536, 'x');
  std::size_t sent = 0;
  for (;;) {
    const ssize_t n =
        ::send(peer.socket(), piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      REQUIRE(sent < size);
      continue;
    }
    pollfd state{peer.socket(), POLLOUT, 0};
    if (::poll(&state, 1, 200) == 0) break;
  }
  CHECK(call.until([&] { return call.body.size() == 1000; }));
  call.stream->vtbl->grant(call.stream, SF_NONE);
  while (sent < size) {
    const std::size_t n = std::min(piece.size(), size - sent);
    peer.send(std::string_view(piece).substr(0, n));
    sent += n;
  }
  REQUIRE(call.until_done());
  CHECK(call.code == SF_OK);
  CHECK(call.body.size() == size);
}

TEST_CASE("http: a streamed body, in chunks") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.method = "PUT";
  ask.flags = SF_HTTP_STREAM_BODY;
  Call& call = bench.send(ask);
  CHECK(bench.write(call, "hello") == std::pair(sf_status{SF_OK}, std::size_t{5}));
  Peer peer = server.accept();
  CHECK_THAT(peer.head(), Catch::Contains("Transfer-Encoding: chunked\r\n"));
  CHECK(peer.read(10) == "5\r\nhello\r\n");
  CHECK(bench.write(call, "") == std::pair(sf_status{SF_OK}, std::size_t{0}));
  CHECK(bench.write(call, " world") == std::pair(sf_status{SF_OK}, std::size_t{6}));
  CHECK(bench.shutdown(call) == SF_OK);
  CHECK(bench.shutdown(call) == SF_OK);
  CHECK(bench.write(call, "x").first == SF_CONFLICT);
  CHECK(peer.read(16) == "6\r\n world\r\n0\r\n\r\n");
  peer.send(answer("ok"));
  REQUIRE(call.until_done());
  CHECK(call.body == "ok");
  CHECK(bench.write(call, "x").first == SF_CONFLICT);
}

TEST_CASE("http: a streamed body of a known length") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.method = "PUT";
  ask.flags = SF_HTTP_STREAM_BODY;
  ask.headers = {{"Content-Length", "5"}};
  Call& call = bench.send(ask);
  Peer peer = server.accept();
  CHECK_THAT(peer.head(), !Catch::Contains("chunked"));
  CHECK(bench.write(call, "hel").second == 3);
  CHECK(bench.write(call, "lo!").first == SF_INVALID);
  SECTION("all of it") {
    CHECK(bench.write(call, "lo").second == 2);
    CHECK(bench.shutdown(call) == SF_OK);
    CHECK(peer.read(5) == "hello");
    peer.send(answer("ok"));
    REQUIRE(call.until_done());
    CHECK(call.code == SF_OK);
  }
  SECTION("less") {
    CHECK(peer.read(3) == "hel");
    CHECK(bench.shutdown(call) == SF_OK);
    REQUIRE(call.until_done());
    CHECK(call.code == SF_INVALID);
    CHECK(call.may_have_started);
    CHECK(peer.read_all().empty());
  }
}

TEST_CASE("http: a body that the server does not read waits, and its refusal is the answer") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.method = "PUT";
  ask.flags = SF_HTTP_STREAM_BODY;
  Call& call = bench.send(ask);
  Peer peer = server.accept_request();
  const std::string piece(1U << 20, 'x');
  std::size_t total = 0;
  bool full = false;
  for (int i = 0; i < 256 && !full; ++i) {
    const int before = call.writables_so_far();
    const auto [status, accepted] = bench.write(call, piece);
    REQUIRE(status == SF_OK);
    total += accepted;
    if (accepted == piece.size()) continue;
    bench.bench.settle(bench.lane);
    full = accepted == 0 && call.writables_so_far() == before;
  }
  REQUIRE(full);
  CHECK(total < (64U << 20));
  SECTION("it is read after all") {
    while (call.writables_so_far() == 0)
      peer.read(65536);
    CHECK(bench.write(call, "y").first == SF_OK);
  }
  SECTION("it answers without reading") {
    peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
    REQUIRE(call.until_done());
    CHECK(call.code == SF_OK);
    CHECK(call.status == 413);
    CHECK(call.body == "no");
  }
}

TEST_CASE("http: cancel at every point") {
  Server server;
  HttpBench bench(server.url, 1);
  std::uint32_t phase = SF_HTTP_NOT_CONNECTED;
  Ask ask;
  Call& first = bench.send(ask);
  Call* call = &first;
  bool at_once = false;  // then it may have come a little further
  std::optional<Peer> holder;
  SECTION("at once") {
    at_once = true;
  }
  SECTION("while it waits for a connection") {
    holder.emplace(server.accept_request());  // to the end: else it would go on
    call = &bench.send(ask);
  }
  SECTION("before the head") {
    phase = SF_HTTP_MAYBE_SENT;
    Peer peer = server.accept_request();
    call->stream->vtbl->cancel(call->stream);
    REQUIRE(call->until_done());
    CHECK(peer.read_all().empty());
  }
  SECTION("after the head") {
    phase = SF_HTTP_HEAD;
    Peer peer = server.accept_request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
    REQUIRE(call->until([&] { return call->status == 200; }));
    call->stream->vtbl->cancel(call->stream);
    REQUIRE(call->until_done());
    CHECK(peer.read_all().empty());
  }
  call->stream->vtbl->cancel(call->stream);
  call->stream->vtbl->cancel(call->stream);
  REQUIRE(call->until_done());
  CHECK(call->code == SF_CANCELLED);
  CHECK(call->phase >= phase);
  CHECK(call->phase <= (at_once ? SF_HTTP_MAYBE_SENT : phase));
  CHECK(call->may_have_started == (call->phase >= SF_HTTP_MAYBE_SENT));
}

TEST_CASE("http: deadlines") {
  HttpBench bench;
  const TempDir folder;
  Ask ask;
  SECTION("connect") {
    // Its queue is full, and nobody accepts.
    Server server((folder.path() / "s").string(), 0);
    std::vector<Peer> waiting;
    for (int i = 0; i < 8; ++i) {
      const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      sockaddr_un at{};
      at.sun_family = AF_UNIX;
      std::strncpy(at.sun_path, (folder.path() / "s").c_str(), sizeof(at.sun_path) - 1);
      waiting.emplace_back(socket);
      if (::connect(socket, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0) break;
    }
    REQUIRE(bench.open(server.url, 4, 50) == SF_OK);
    Call& call = bench.send(ask);
    REQUIRE(call.until_done());
    CHECK(call.code == SF_TIMEOUT);
    CHECK(call.phase == SF_HTTP_NOT_CONNECTED);
    CHECK_FALSE(call.may_have_started);
    CHECK_THAT(call.message, Catch::Contains("could not be reached in time"));
  }
  SECTION("for a connection of the pool") {
    Server server;
    REQUIRE(bench.open(server.url, 1) == SF_OK);
    bench.send(ask);
    ask.timeout_ms = 50;
    Call& call = bench.send(ask);
    REQUIRE(call.until_done());
    CHECK(call.code == SF_TIMEOUT);
    CHECK(call.phase == SF_HTTP_NOT_CONNECTED);
    CHECK_THAT(call.message, Catch::Contains("had no connection free in time"));
  }
  SECTION("head") {
    Server server;
    REQUIRE(bench.open(server.url) == SF_OK);
    ask.timeout_ms = 1000;
    Call& call = bench.send(ask);
    Peer peer = server.accept();
    peer.send("HTTP/1.1 200 OK\r\nX: ");
    REQUIRE(call.until_done());
    CHECK(call.code == SF_TIMEOUT);
    CHECK(call.phase == SF_HTTP_MAYBE_SENT);
    CHECK(call.may_have_started);
    CHECK_THAT(call.message, Catch::Contains("did not answer in time"));
  }
  SECTION("idle") {
    Server server;
    REQUIRE(bench.open(server.url) == SF_OK);
    ask.idle_timeout_ms = 50;
    Call& call = bench.send(ask);
    Peer peer = server.accept_request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    REQUIRE(call.until_done());
    CHECK(call.code == SF_TIMEOUT);
    CHECK(call.body == "abc");
    CHECK(call.phase == SF_HTTP_BODY);
    CHECK_THAT(call.message, Catch::Contains("sent or took nothing for too long"));
  }
}

TEST_CASE("http: a consumer that grants nothing is no idle server") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.window = 1;
  ask.idle_timeout_ms = 1;
  Call& call = bench.send(ask, false);
  Peer peer = server.accept_request();
  peer.send(answer("abc"));
  REQUIRE(call.until([&] { return call.body == "a"; }));
  // A second deadline of the same length has certainly been reached after that.
  sf_http_client* first = std::exchange(bench.client, nullptr);
  REQUIRE(bench.open(server.url) == SF_OK);
  ask.timeout_ms = 100;
  REQUIRE(bench.send(ask).until_done());
  CHECK_FALSE(call.done);
  call.stream->vtbl->grant(call.stream, 10);
  REQUIRE(call.until_done());
  CHECK(call.code == SF_OK);
  CHECK(call.body == "abc");
  bench.release();
  bench.client = first;
}

TEST_CASE("http: requests that could say something else than they seem to") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  SECTION("no method") {
    ask.method = "";
  }
  SECTION("a method of two words") {
    ask.method = "GET /";
  }
  SECTION("CONNECT") {
    ask.method = "CONNECT";
  }
  SECTION("no target") {
    ask.target = "";
  }
  SECTION("a relative target") {
    ask.target = "boxes";
  }
  SECTION("a whole URL") {
    ask.target = "http://elsewhere/";
  }
  SECTION("a space") {
    ask.target = "/a b";
  }
  SECTION("a line in the target") {
    ask.target = "/ HTTP/1.1\r\nX: y";
  }
  SECTION("a line in a header") {
    ask.headers = {{"X", "a\r\nY: b"}};
  }
  SECTION("a lone line feed") {
    ask.headers = {{"X", "a\nY: b"}};
  }
  SECTION("NUL") {
    ask.headers = {{"X", std::string("a\0b", 3)}};
  }
  SECTION("a name with a colon") {
    ask.headers = {{"X:", "a"}};
  }
  SECTION("an empty name") {
    ask.headers = {{"", "a"}};
  }
  SECTION("two hosts") {
    ask.headers = {{"Host", "a"}, {"hOST", "b"}};
  }
  SECTION("a coding") {
    ask.headers = {{"transfer-encoding", "chunked"}};
  }
  SECTION("a length") {
    ask.headers = {{"Content-Length", "0"}};
  }
  SECTION("two lengths") {
    ask.flags = SF_HTTP_STREAM_BODY;
    ask.headers = {{"Content-Length", "1"}, {"Content-Length", "1"}};
  }
  SECTION("a length that is none") {
    ask.flags = SF_HTTP_STREAM_BODY;
    ask.headers = {{"Content-Length", "1x"}};
  }
  SECTION("a body twice") {
    ask.flags = SF_HTTP_STREAM_BODY;
    ask.body = "x";
  }
  Call call(bench.lane, false);
  CHECK(bench.begin(ask, call) == SF_INVALID);
  CHECK(call.stream == nullptr);
  CHECK_FALSE(bench.error.empty());
  bench.bench.settle(bench.lane);
  CHECK_FALSE(server.somebody_waits());
}

TEST_CASE("http: base URLs") {
  using sandforge::http::parse_base_url;
  const auto name = [](const char* url) {
    const auto parsed = parse_base_url(url);
    return parsed ? parsed->name() + "|" + parsed->prefix + "|" + parsed->authority : "refused";
  };
  CHECK(name("http://a") == "a:80||a");
  CHECK(name("https://a.b:8443/v1//") == "a.b:8443|/v1|a.b:8443");
  CHECK(name("http://[::1]:81/") == "[::1]:81||[::1]:81");
  CHECK(name("unix:///run/docker.sock") == "/run/docker.sock||localhost");
  for (const char* bad :
       {"", "a", "ftp://a", "http://", "http://:80", "http://a:0", "http://a:65536", "http://a:b",
        "http://u:p@a", "http://a b", "http://a/?q", "http://a/#f", "http://a:80:81", "unix://",
        "unix:///", "unix://relative", "http://a\r\nX: y"})
    CHECK(name(bad) == "refused");
  for (const char* bad : {"http://[::1", "http://[::1]880", "http://[::1]x:80", "http://[::1]:"})
    CHECK(name(bad) == "refused");
}
