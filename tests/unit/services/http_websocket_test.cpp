// WebSockets over the http service, against a server that says every byte itself.
#include "http_websocket_fixture.hpp"

#include <future>
#include <random>

#include "http/websocket.hpp"
#include "support/temp_dir.hpp"

using namespace sandforge;
using namespace sandforge::test;
using namespace std::string_literals;

namespace {

constexpr std::uint32_t kText = SF_DATA_TEXT | SF_DATA_END;
constexpr std::uint32_t kBinary = SF_DATA_BINARY | SF_DATA_END;

// An open WebSocket.
struct Open {
  // `path`: of a unix socket, of which the kernel keeps little; empty: over tcp.
  explicit Open(Ask ask = {}, bool gives_back = true, const std::string& with_head = {},
                const std::string& path = {})
      : server(path) {
    ask.flags |= SF_HTTP_WEBSOCKET;
    REQUIRE(bench.open(server.url) == SF_OK);
    call = &bench.send(ask, gives_back);
    peer.emplace(server.accept());
    head = peer->head();
    peer->send(switching(head) + with_head);
    REQUIRE(call->until([&] { return call->status != 0; }));
  }
  bool until_messages(std::size_t count) {
    return call->until([&] { return call->messages.size() >= count; });
  }
  Server server;
  HttpBench bench;
  Call* call = nullptr;
  std::optional<Peer> peer;
  std::string head;
};

// What a reader makes of bytes that come in pieces of at most `most`, with room for as many.
std::string read_in_pieces(const std::string& bytes, std::size_t most) {
  using http::FrameReader;
  FrameReader reader;
  std::string events;
  std::string kept;
  std::size_t taken = 0;
  for (;;) {
    const auto step = reader.next(kept, most);
    if (step.used > kept.size() || step.payload.size() > kept.size()) return "outside";
    if (step.state == FrameReader::State::data) {
      if (events.empty() || events.back() != '+') events += step.text ? "text:" : "binary:";
      if (events.back() == '+') events.pop_back();
      events += step.payload;
      events += step.last ? ";" : "+";
    } else if (step.state != FrameReader::State::more) {
      if (!events.empty() && events.back() == '+') events += "|";
      events += std::to_string(static_cast<int>(step.state)) + std::string(step.payload) +
                std::to_string(step.code) + step.why + ";";
    }
    if (step.state == FrameReader::State::wrong || step.state == FrameReader::State::close)
      return events;
    kept.erase(0, step.used);
    if (step.used > 0) continue;
    if (taken == bytes.size()) return events;
    const std::size_t size = std::min(most, bytes.size() - taken);
    kept += bytes.substr(taken, size);
    taken += size;
  }
}

}  // namespace

TEST_CASE("websocket: a reader says the same of bytes however they are cut, whatever they are") {
  std::mt19937 dice(11);
  int wrong = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (auto frames = dice() % 6; frames > 0; --frames) {
      constexpr unsigned kinds[] = {0x81, 0x82, 0x89, 0x8A, 0x81, 0x88};
      bytes += frame(kinds[dice() % 6], std::string(dice() % 200, 'x'));
    }
    for (auto changes = dice() % 3; changes > 0 && !bytes.empty(); --changes)
      bytes[dice() % bytes.size()] = static_cast<char>(dice());
    const std::string whole = read_in_pieces(bytes, 1U << 20);
    CHECK(whole != "outside");
    const std::string pieces = read_in_pieces(bytes, 1 + dice() % 40);
    CHECK(pieces != "outside");
    // A text that turns out to be none was given in part, or not at all.
    if (whole != pieces && whole.find("UTF-8") == std::string::npos) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("websocket: the handshake, and the subprotocol that was chosen") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.flags = SF_HTTP_WEBSOCKET;
  ask.target = "/attach?x=1";
  ask.headers = {{"Origin", "http://here"}};
  ask.subprotocols = "v1.box, v2.box";
  Call& call = bench.send(ask);
  Peer peer = server.accept();
  const std::string head = peer.head();
  CHECK_THAT(head, Catch::StartsWith("GET /attach?x=1 HTTP/1.1\r\nOrigin: http://here\r\n"));
  CHECK(header_of(head, "Upgrade") == "websocket");
  CHECK(header_of(head, "Connection") == "Upgrade");
  CHECK(header_of(head, "Sec-WebSocket-Version") == "13");
  CHECK(header_of(head, "Sec-WebSocket-Protocol") == "v1.box, v2.box");
  CHECK(header_of(head, "Sec-WebSocket-Key").size() == 24);
  CHECK(bench.write(call, "early", kText) == std::pair(SF_OK, std::size_t{0}));
  peer.send(switching(head, "Sec-WebSocket-Protocol: v2.box\r\n"));
  REQUIRE(call.until([&] { return call.writables == 1; }));
  CHECK(call.status == 101);
  CHECK(call.upgraded == 1);
  CHECK(call.subprotocol == "v2.box");
  CHECK(bench.write(call, "early", kText) == std::pair(SF_OK, std::size_t{5}));
  CHECK(read_frame(peer) == Frame{0x81, "early"});
}

TEST_CASE("websocket: messages both ways, of every length that frames write in its own way") {
  Open open;
  const std::size_t size = GENERATE(values<std::size_t>({0, 1, 125, 126, 65535, 65536, 300'000}));
  const std::string text(size, 'x');
  const std::string bytes(size, '\xff');
  auto echo = std::async(std::launch::async, [&] {
    for (int i = 0; i < 2; ++i) {
      std::string all;
      unsigned first = 0;
      unsigned kind = 0;
      do {
        const auto [of, payload] = read_frame(*open.peer);
        if (of == 0) return;
        if (all.empty() && kind == 0) kind = of & 0x0F;
        first = of;
        all += payload;
      } while ((first & 0x80) == 0);
      open.peer->send(frame(0x80 | kind, all));
    }
  });
  const auto write = [&](std::string_view rest, std::uint32_t flags) {
    for (;;) {
      const int before = open.call->writables_so_far();
      const auto [status, accepted] = open.bench.write(*open.call, rest, flags);
      REQUIRE(status == SF_OK);
      if (accepted == rest.size()) return;
      rest.remove_prefix(accepted);
      REQUIRE(open.call->until([&] { return open.call->writables > before; }));
    }
  };
  write(text, kText);
  write(bytes, kBinary);
  CHECK(open.until_messages(2));
  echo.get();
  CHECK(open.call->messages == std::vector<std::string>{"text " + text, "binary " + bytes});
}

TEST_CASE("websocket: a message in pieces, in both directions") {
  Open open;
  // "€" is cut in two, and a ping comes between.
  open.peer->send(frame(0x01, "a\xe2\x82") + frame(0x89, "p") + frame(0x00, "") +
                  frame(0x00, "\xac") + frame(0x80, ""));
  REQUIRE(open.until_messages(1));
  CHECK(open.call->messages.back() == "text a\xe2\x82\xac");
  CHECK(read_frame(*open.peer) == Frame{0x8A, "p"});
  CHECK(open.bench.write(*open.call, "\xe2", SF_DATA_TEXT).first == SF_OK);
  CHECK(open.bench.write(*open.call, "\x82\xac", 0).first == SF_OK);
  CHECK(open.bench.write(*open.call, "", SF_DATA_END).first == SF_OK);
  CHECK(read_frame(*open.peer) == Frame{0x01, "\xe2"});
  CHECK(read_frame(*open.peer) == Frame{0x00, "\x82\xac"});
  CHECK(read_frame(*open.peer) == Frame{0x80, ""});
}

TEST_CASE("websocket: a server that drips, and frames that came with the head") {
  Open open({}, true, frame(0x81, "first"));
  REQUIRE(open.until_messages(1));
  for (const char c : frame(0x82, std::string(200, '\0')))
    open.peer->send(std::string_view(&c, 1));
  REQUIRE(open.until_messages(2));
  CHECK(open.call->messages[0] == "text first");
  CHECK(open.call->messages[1] == "binary " + std::string(200, '\0'));
}

TEST_CASE("websocket: what is written must be a message") {
  Open open;
  CHECK(open.bench.write(*open.call, "\xff", kText).first == SF_INVALID);
  CHECK(open.bench.write(*open.call, "\xe2", kText).first == SF_INVALID);
  CHECK(open.bench.write(*open.call, "x", kText | kBinary).first == SF_INVALID);
  CHECK(open.bench.write(*open.call, "x", SF_DATA_TEXT).first == SF_OK);
  CHECK(open.bench.write(*open.call, "y", kBinary).first == SF_INVALID);
  CHECK(open.bench.write(*open.call, "y", kText).first == SF_OK);
  CHECK(open.bench.write(*open.call, "z", SF_DATA_END).first == SF_OK);
  CHECK(read_frame(*open.peer) == Frame{0x01, "x"});
  CHECK(read_frame(*open.peer) == Frame{0x80, "y"});
  CHECK(read_frame(*open.peer) == Frame{0x82, "z"});  // by default: binary
}

TEST_CASE("websocket: no more than granted, also in the middle of a message") {
  Ask ask;
  ask.window = 3;
  Open open(ask, false);
  open.peer->send(frame(0x82, "abcdef") + frame(0x81, ""));
  REQUIRE(open.call->until([&] { return open.call->body == "abc"; }));
  open.bench.bench.settle(open.bench.lane);
  CHECK(open.call->body == "abc");
  open.call->stream->vtbl->grant(open.call->stream, 3);
  REQUIRE(open.until_messages(2));
  CHECK(open.call->messages == std::vector<std::string>{"binary abcdef", "text "});
  open.peer->send(frame(0x82, "undelivered"));
  open.peer->close();
  // After all of another request whoever waits has certainly heard of it.
  Call& other = open.bench.send({});
  Peer peer = open.server.accept_request();
  peer.send(answer("x"));
  REQUIRE(other.until_done());
  CHECK_FALSE(open.call->done);
  open.call->stream->vtbl->cancel(open.call->stream);
  REQUIRE(open.call->until_done());
  CHECK(open.call->code == SF_CANCELLED);
}

TEST_CASE("websocket: a close of the client, and messages until it is answered") {
  Open open;
  CHECK(open.bench.write(*open.call, "last", kText).first == SF_OK);
  CHECK(open.bench.shutdown(*open.call) == SF_OK);
  CHECK(open.bench.shutdown(*open.call) == SF_OK);
  CHECK(open.bench.write(*open.call, "more", kText).first == SF_CONFLICT);
  CHECK(read_frame(*open.peer) == Frame{0x81, "last"});
  CHECK(read_frame(*open.peer) == Frame{0x88, "\x03\xe8"});
  open.peer->send(frame(0x81, "late"));
  REQUIRE(open.until_messages(1));
  SECTION("with a frame") {
    open.peer->send(frame(0x88, "\x03\xe8"));
    REQUIRE(open.call->until_done());
    CHECK(open.call->code == SF_OK);
    CHECK(open.call->close_code == 1000);
    CHECK(open.peer->read_all().empty());
  }
  SECTION("by the end of the connection") {
    open.peer->close();
    REQUIRE(open.call->until_done());
    CHECK(open.call->code == SF_OK);
    CHECK(open.call->close_code == 0);
  }
  SECTION("by its end in the middle of a message") {
    open.peer->send(frame(0x01, "half"));
    open.peer->close();
    REQUIRE(open.call->until_done());
    CHECK(open.call->code == SF_TRANSPORT_LOST);
  }
  CHECK(open.call->messages.at(0) == "text late");
}

TEST_CASE("websocket: a close that nobody answers ends all the same") {
  Ask ask;
  ask.close_timeout_ms = 50;
  Open open(ask);
  CHECK(open.bench.shutdown(*open.call) == SF_OK);
  REQUIRE(open.call->until_done());
  CHECK(open.call->code == SF_TIMEOUT);
  CHECK_THAT(open.call->message, Catch::EndsWith("did not answer the close in time"));
  CHECK(read_frame(*open.peer).first == 0x88);
  CHECK(open.peer->read_all().empty());
}

TEST_CASE("websocket: a close of the server, with its code and reason") {
  Open open;
  SECTION("a code and a reason") {
    open.peer->send(frame(0x81, "bye") + frame(0x88, "\x03\xf3out of boxes"));
    REQUIRE(open.call->until_done());
    CHECK(open.call->close_code == 1011);
    CHECK(open.call->close_reason == "out of boxes");
    CHECK(open.call->messages == std::vector<std::string>{"text bye"});
    CHECK(read_frame(*open.peer) == Frame{0x88, "\x03\xf3"});
  }
  SECTION("nothing") {
    open.peer->send(frame(0x88, "") + "and bytes after it");
    REQUIRE(open.call->until_done());
    CHECK(open.call->close_code == 0);
    CHECK(read_frame(*open.peer) == Frame{0x88, ""});
  }
  CHECK(open.call->code == SF_OK);
  CHECK(open.call->phase == SF_HTTP_BODY);
}

TEST_CASE("websocket: the end of the connection without a close is no regular end") {
  Open open;
  open.peer->send(frame(0x81, "x"));
  open.peer->close();
  REQUIRE(open.call->until_done());
  CHECK(open.call->code == SF_TRANSPORT_LOST);
  CHECK(open.call->may_have_started);
  CHECK(open.call->messages == std::vector<std::string>{"text x"});
}

TEST_CASE("websocket: pings are answered, and kept up") {
  Ask ask;
  ask.ping_ms = 500;
  Open open(ask);
  SECTION("of the server") {
    open.peer->send(frame(0x89, "how are you"));
    Frame got = read_frame(*open.peer);
    while (got.first == 0x89)
      got = read_frame(*open.peer);
    CHECK(got == Frame{0x8A, "how are you"});
  }
  SECTION("of the client, answered") {
    for (int i = 0; i < 2; ++i) {
      CHECK(read_frame(*open.peer) == Frame{0x89, ""});
      open.peer->send(frame(0x8A, ""));
    }
    CHECK_FALSE(open.call->done);
  }
  SECTION("of the client, and nothing comes back") {
    REQUIRE(open.call->until_done());
    CHECK(open.call->code == SF_TIMEOUT);
    CHECK_THAT(open.call->message, Catch::EndsWith("did not answer a ping in time"));
    CHECK(read_frame(*open.peer) == Frame{0x89, ""});
  }
}

TEST_CASE("websocket: frames against the protocol end it, with a code for the server") {
  struct Case {
    std::string bytes;
    std::string code;
  };
  const std::string protocol = "\x03\xea";
  const std::string text = "\x03\xef";
  const auto wrong = GENERATE_COPY(values<Case>({
      {frame(0xC1, "x"), protocol},              // an extension
      {"\x81\x81\x01\x02\x03\x04x"s, protocol},  // masked
      {frame(0x83, "x"), protocol},              // unknown kinds
      {frame(0x8B, "x"), protocol},
      {frame(0x09, "x"), protocol},                             // a ping in pieces
      {frame(0x89, std::string(126, 'x')), protocol},           // a long one
      {frame(0x80, "x"), protocol},                             // no begin
      {frame(0x01, "x") + frame(0x81, "y"), protocol},          // one in another
      {"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"s, protocol},  // impossible length
      {frame(0x88, "\x03"), protocol},                          // half a code
      {frame(0x88, "\x03\xed"), protocol},                      // 1005
      {frame(0x88, "\x27\x10"), protocol},                      // 10000
      {frame(0x88, "\x03\xe8\xff"), text},                      // reason
      {frame(0x81, "\xff"), text},
      {frame(0x81, "\xc0\x80"), text},                    // overlong
      {frame(0x81, "\xed\xa0\x80"), text},                // surrogate
      {frame(0x81, "\xf4\x90\x80\x80"), text},            // too large
      {frame(0x01, "\xe2\x82") + frame(0x80, ""), text},  // cut short
  }));
  Open open;
  open.peer->send(wrong.bytes);
  REQUIRE(open.call->until_done());
  CHECK(open.call->code == SF_TRANSPORT_LOST);
  CHECK_THAT(open.call->message, Catch::Contains(" was ended: "));
  CHECK(open.call->close_code == 0);
  CHECK(read_frame(*open.peer) == Frame{0x88, wrong.code});
}

TEST_CASE("websocket: a refused handshake is an ordinary answer") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.flags = SF_HTTP_WEBSOCKET;
  Call& call = bench.send(ask);
  Peer peer = server.accept_request();
  CHECK(bench.write(call, "x", kText) == std::pair(SF_OK, std::size_t{0}));
  peer.send("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nno");
  REQUIRE(call.until([&] { return call.writables == 1; }));
  CHECK(bench.write(call, "x", kText).first == SF_CONFLICT);
  peer.send("ne");
  REQUIRE(call.until_done());
  CHECK(call.code == SF_OK);
  CHECK(call.status == 404);
  CHECK(call.upgraded == 0);
  CHECK(call.body == "none");
  // Its connection is kept.
  Call& next = bench.send({});
  CHECK_THAT(peer.head(), Catch::StartsWith("GET / "));
  peer.send(answer("ok"));
  REQUIRE(next.until_done());
}

TEST_CASE("websocket: an answer to another handshake is none") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.flags = SF_HTTP_WEBSOCKET;
  ask.subprotocols = "a,b";
  Call& call = bench.send(ask);
  Peer peer = server.accept();
  const std::string head = peer.head();
  std::string text = switching(head);
  SECTION("of another key") {
    text = switching("\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n");
  }
  SECTION("an extension") {
    text = switching(head, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
  }
  SECTION("a subprotocol") {
    text = switching(head, "Sec-WebSocket-Protocol: c\r\n");
  }
  SECTION("another protocol") {
    text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n";
  }
  peer.send(text);
  REQUIRE(call.until_done());
  CHECK(call.code == SF_TRANSPORT_LOST);
  CHECK(call.status == 0);
}

TEST_CASE("websocket: a request that is none for it is refused") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.flags = SF_HTTP_WEBSOCKET;
  SECTION("a POST") {
    ask.method = "POST";
  }
  SECTION("a body") {
    ask.body = "x";
  }
  SECTION("a streamed body") {
    ask.flags |= SF_HTTP_STREAM_BODY;
  }
  SECTION("another upgrade") {
    ask.flags |= SF_HTTP_UPGRADE;
  }
  SECTION("a header of the handshake") {
    ask.headers = {{"sec-websocket-key", "x"}};
  }
  SECTION("a subprotocol that would be a header") {
    ask.subprotocols = "a\r\nX: y";
  }
  SECTION("no subprotocol between commas") {
    ask.subprotocols = "a,,b";
  }
  Call call(bench.lane, true);
  CHECK(bench.begin(ask, call) == SF_INVALID);
}

TEST_CASE("websocket: shut down before the handshake, it closes after it") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.flags = SF_HTTP_WEBSOCKET;
  Call& call = bench.send(ask);
  Peer peer = server.accept();
  const std::string head = peer.head();
  CHECK(bench.shutdown(call) == SF_OK);
  peer.send(switching(head));
  CHECK(read_frame(peer) == Frame{0x88, "\x03\xe8"});
  peer.send(frame(0x88, "\x03\xe8"));
  REQUIRE(call.until_done());
  CHECK(call.code == SF_OK);
}

TEST_CASE("websocket: pings without end do not fill the memory") {
  const TempDir folder;
  Open open({}, true, {}, (folder.path() / "s").string());
  std::string many;
  for (int i = 0; i < 1000; ++i)
    many += frame(0x89, std::string(125, 'p'));
  // Five megabytes of answers, of which none is read before all were asked for.
  for (int i = 0; i < 40; ++i)
    open.peer->send(many);
  open.peer->send(frame(0x81, "after"));
  REQUIRE(open.until_messages(1));
  CHECK(open.bench.shutdown(*open.call) == SF_OK);
  int answers = 0;
  while (read_frame(*open.peer).first == 0x8A)
    ++answers;
  CHECK(answers > 0);
  CHECK(answers < 20'000);
}

TEST_CASE("websocket: empty messages without end do not fill the memory") {
  Open open;
  const auto write = [&](std::string_view text, std::uint32_t flags) {
    std::size_t accepted = 0;
    return open.call->stream->vtbl->write(
        open.call->stream, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, flags,
        &accepted, nullptr);
  };
  int taken = 0;
  const sf_status last = open.bench.bench.on(open.bench.lane, [&] {
    // Whatever waits, what has begun can be ended.
    CHECK(write(std::string(1U << 20, 'x'), SF_DATA_BINARY) == SF_OK);
    CHECK(write("", SF_DATA_END) == SF_OK);
    sf_status status = SF_OK;
    while (taken < 200'000 && (status = write("", kBinary)) == SF_OK)
      ++taken;
    return status;
  });
  REQUIRE(last == SF_RATE_LIMITED);
  CHECK(taken > 0);
  // Half of it is on its way, and there is room again.
  open.peer->read(300U << 10);
  REQUIRE(open.call->until([&] { return open.call->writables > 1; }));
  CHECK(open.bench.write(*open.call, "", kBinary).first == SF_OK);
}
