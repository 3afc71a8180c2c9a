// Each skeleton goes through the same job against a fake of its other end.
#include <sandforge/testing/driver.hpp>

#include <sys/un.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "test_paths.hpp"

using namespace sandforge::testing;

namespace {

// Open, describe, create, start, echo under a credit of four bytes, destroy.
void rehearse(Host& host, const std::string& path) {
  {
    Driver driver(host, load_plugin(path));
    Failure failure;
    REQUIRE(driver.open("skeleton", "{}", failure) == SF_OK);
    const auto description = driver.describe();
    CHECK(description.done == 1);
    CHECK(description.schema.find("additionalProperties") != std::string::npos);
    Context context;
    REQUIRE(driver.create(&context, "{}", failure) == SF_OK);
    const auto started = driver.start();
    CHECK(started.done == 1);
    CHECK(started.identity == "box-1");
    CHECK_FALSE(started.late_identity);

    CommandLine line;
    line.argv = {"echo", "hello,", "sandbox"};
    line.window = 4;
    Running running(line.window);
    REQUIRE(driver.spawn(line, running, failure) == SF_OK);
    REQUIRE(driver.wait([&] { return running.done > 0; }));
    CHECK(running.failure.message == "");
    CHECK(running.started == 1);
    CHECK(running.out == "hello, sandbox\n");
    CHECK(running.exited == 1);
    CHECK(running.exit.outcome == SF_EXIT_EXITED);
    CHECK(running.exit.code == 0);
    CHECK(running.end.delivered == 15);
    CHECK(running.rules_kept());
    CHECK_FALSE(running.disorder);
    running.release();

    CHECK(driver.run(&sf_sandbox_vtbl::destroy).done == 1);
    driver.release();
    host.join();
    host.loop.drain();
    CHECK(running.done == 1);
  }
  CHECK(left_over() == "");
}

std::string docker_frame(char channel, const std::string& payload) {
  std::string head(8, '\0');
  head[0] = channel;
  head[7] = static_cast<char>(payload.size());
  return head + payload;
}

}  // namespace

TEST_CASE("docker over a hijacked exec") {
  Host host;
  std::vector<std::string> asked;
  host.http.handler = [&](const std::shared_ptr<Exchange>& e) {
    asked.push_back(e->method + " " + e->target);
    if (e->target == "/containers/box-1/exec") return e->answer(201, R"({"Id":"e1"})");
    if (e->target == "/exec/e1/json") {
      return e->answer(200, R"({"ID":"e1","Running":false,"ExitCode":0,"Pid":7})");
    }
    CHECK(e->header("Upgrade") == "tcp");
    CHECK((e->flags & SF_HTTP_UPGRADE) != 0);
    e->respond(101, true);
    const std::string wire = docker_frame(1, "hello, ") + docker_frame(1, "sandbox\n");
    e->send(wire.substr(0, 3));  // a header cut in two
    e->send(wire.substr(3));
    e->end();
  };
  rehearse(host, SKELETON_DOCKER);
  CHECK(asked == std::vector<std::string>{"POST /containers/box-1/exec", "POST /exec/e1/start",
                                          "GET /exec/e1/json"});
}

TEST_CASE("e2b over a Connect stream") {
  Host host;
  host.http.handler = [](const std::shared_ptr<Exchange>& e) {
    CHECK(e->target == "/process.Process/Start");
    CHECK(e->header("Content-Type") == "application/connect+json");
    const auto envelope = [](char flag, const std::string& json) {
      return std::string{flag, 0, 0, 0, static_cast<char>(json.size())} + json;
    };
    std::string wire =
        envelope(0, R"({"event":{"start":{"pid":41}}})") +
        envelope(0, R"({"event":{"data":{"stdout":"aGVsbG8sIA=="}}})") +
        envelope(0, R"({"event":{"data":{"stdout":"c2FuZGJveAo="}}})") +
        envelope(0, R"({"event":{"end":{"exited":true,"status":"exit status 0"}}})") +
        envelope(2, "{}");
    e->respond(200);
    for (; !wire.empty(); wire.erase(0, 3))
      e->send(wire.substr(0, 3));
    e->end();
  };
  rehearse(host, SKELETON_E2B);
}

TEST_CASE("platform over a WebSocket") {
  Host host;
  std::vector<std::string> sent;
  int closed = 0;
  std::shared_ptr<Exchange> socket;
  // Takes ten bytes at a time: the rest comes after on_writable.
  const auto on_write = [&](std::string_view data, std::uint32_t flags) -> std::size_t {
    const auto n = std::min<std::size_t>(data.size(), 10);
    if (sent.empty() || sent.back().back() == '\n') sent.emplace_back();
    sent.back() += data.substr(0, n);
    if (n < data.size()) {
      socket->stream->writable();
      return n;
    }
    if ((flags & SF_DATA_END) != 0) sent.back() += '\n';
    if (sent.size() < 2) return n;
    socket->send("\x01hello, ", SF_DATA_BINARY | SF_DATA_END);
    socket->send("\x01sandbox\n", SF_DATA_BINARY | SF_DATA_END);
    socket->send("\x02ignored", SF_DATA_BINARY | SF_DATA_END);
    socket->send(R"({"type":"exit","data":{"exit_code":0}})", SF_DATA_TEXT | SF_DATA_END);
    return n;
  };
  host.http.handler = [&](const std::shared_ptr<Exchange>& e) {
    if (e->method == "POST") {
      return e->answer(200, R"({"subprotocol":"railway-shell","jwt":"token"})");
    }
    CHECK(e->subprotocols == "railway-shell,token");
    socket = e;
    e->stream->on_write = on_write;
    e->stream->on_shutdown = [&] {
      ++closed;
      socket->end(SF_HTTP_BODY, {}, 1000);
      socket.reset();
    };
    e->respond(101, true, "railway-shell");
  };
  rehearse(host, SKELETON_PLATFORM);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0] == "{\"type\":\"init_exec\",\"data\":{\"command\":\"echo\"}}\n");
  CHECK(sent[1] == "{\"type\":\"stdin_close\"}\n");
  CHECK(closed == 1);
}

namespace {

// A guest that knows echo: one connection, one command, output only under credit.
void serve_guest(int listener, bool& kept_credit) {
  const int fd = ::accept(listener, nullptr, nullptr);
  std::string in;
  std::string out;
  std::size_t credit = 0;
  bool exited = false;
  const auto send = [fd](char type, const std::string& payload) {
    std::string frame(5, type);
    frame[1] = frame[2] = frame[3] = 0;
    frame[4] = static_cast<char>(payload.size());
    frame += payload;
    // The frame in two pieces, cut in its header.
    if (::write(fd, frame.data(), 2) != 2) return;
    if (::write(fd, frame.data() + 2, frame.size() - 2) < 0) return;
  };
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;) {
    in.append(buffer, static_cast<std::size_t>(n));
    while (in.size() >= 5 && in.size() >= 5U + static_cast<unsigned char>(in[4])) {
      const std::size_t size = static_cast<unsigned char>(in[4]);
      const std::string payload = in.substr(5, size);
      if (in[0] == 'W' || in[0] == 'G') credit += std::stoul(payload);
      if (in[0] == 'S') {
        send('P', "77");
        std::string words = payload;
        std::replace(words.begin(), words.end(), '\0', ' ');
        words.back() = '\n';
        out = words.substr(words.find(' ') + 1);
      }
      in.erase(0, 5 + size);
      const auto may = std::min(credit, out.size());
      if (may > 0) send('O', out.substr(0, may));
      out.erase(0, may);
      credit -= may;
      kept_credit = kept_credit && credit <= 4;
      if (out.empty() && in.empty() && may > 0 && !std::exchange(exited, true)) send('X', "0");
    }
  }
  ::close(fd);
}

}  // namespace

TEST_CASE("local over the guest") {
  std::string folder = (std::filesystem::temp_directory_path() / "sfXXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder + "/guest.sock";
  REQUIRE(path.size() < sizeof address.sun_path);
  std::copy(path.begin(), path.end(), address.sun_path);
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener, 1) == 0);
  bool kept_credit = true;
  std::thread guest([&] { serve_guest(listener, kept_credit); });

  Host host;
  host.paths[SF_PATH_RUNTIME] = folder;
  rehearse(host, SKELETON_LOCAL);
  guest.join();
  ::close(listener);
  std::filesystem::remove_all(folder);
  CHECK(kept_credit);
}

TEST_CASE("a plugin in Rust") {
  if (*SKELETON_RUST == '\0') {
    WARN("SKIPPED: rustc is not installed");
    return;
  }
  Host host;
  rehearse(host, SKELETON_RUST);
}
