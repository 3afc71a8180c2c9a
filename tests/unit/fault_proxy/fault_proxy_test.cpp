#include "fault_proxy.hpp"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/temp_dir.hpp"

using namespace sandforge;
using namespace sandforge::proxy;

namespace {

// A socket with blocking calls that give up after a minute.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {
    const timeval limit{60, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  bool send(const std::string& text) const {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const auto n = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }
  // Some bytes; empty: the end, or an error, which errno tells (0: the end).
  std::string some() const {
    char buffer[65536];
    errno = 0;
    const auto n = ::recv(fd_, buffer, sizeof buffer, 0);
    return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : std::string();
  }
  std::string exactly(std::size_t count) const {
    std::string out;
    while (out.size() < count) {
      const auto piece = some();
      if (piece.empty()) break;
      out += piece;
    }
    return out;
  }
  std::string all() const {
    std::string out;
    for (auto piece = some(); !piece.empty(); piece = some())
      out += piece;
    return out;
  }
  // Sends, and is then reset: whichever call comes first after it hears of that, and only that one.
  bool is_reset_by(const std::string& text) const {
    if (!send(text)) return errno == ECONNRESET || errno == EPIPE;
    static_cast<void>(all());
    return errno == ECONNRESET;
  }
  void end() const { ::shutdown(fd_, SHUT_WR); }
  // Nothing has come within a moment: what must not come cannot be waited for.
  bool quiet() const {
    const timeval moment{0, 50'000};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment);
    char byte = 0;
    const bool none = ::recv(fd_, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
    const timeval limit{60, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return none;
  }

 private:
  int fd_;
};

Socket connect_to(const ProxyAddress& address) {
  if (address.is_unix()) {
    Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    address.path.copy(to.sun_path, sizeof to.sun_path - 1);
    REQUIRE(::connect(socket.fd(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    return socket;
  }
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  ::inet_pton(AF_INET, address.host.c_str(), &to.sin_addr);
  REQUIRE(::connect(socket.fd(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  return socket;
}

// A server on a unix socket, with a thread for each connection.
class Server {
 public:
  explicit Server(std::function<void(const Socket&)> serve)
      : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), serve_(std::move(serve)) {
    address.path = dir_.path() / "server";
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    address.path.copy(at.sun_path, sizeof at.sun_path - 1);
    REQUIRE(::bind(listener_.fd(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(listener_.fd(), 16) == 0);
    thread_ = std::thread([this] {
      for (;;) {
        const int fd = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0 && errno == EAGAIN) continue;
        if (fd < 0) return;
        connections_.emplace_back([this, socket = Socket(fd)] { serve_(socket); });
      }
    });
  }
  // After its clients.
  ~Server() {
    ::shutdown(listener_.fd(), SHUT_RDWR);
    thread_.join();
    for (auto& connection : connections_)
      connection.join();
  }
  std::string path(const char* name) const { return dir_.path() / name; }

  ProxyAddress address;

 private:
  test::TempDir dir_;
  Socket listener_;
  std::function<void(const Socket&)> serve_;
  std::thread thread_;
  std::vector<std::thread> connections_;  // of thread_, until it has ended
};

void echo(const Socket& socket) {
  for (auto piece = socket.some(); !piece.empty(); piece = socket.some())
    if (!socket.send(piece)) return;
}

std::unique_ptr<FaultProxy> proxy_of(const Server& server, const std::string& rules) {
  FaultProxy::Options options;
  options.listen = parse_proxy_address("tcp:127.0.0.1:0", false).value();
  options.to = server.address;
  options.plan = parse_proxy_plan("rules", "rules: [" + rules + "]").value();
  return FaultProxy::open(std::move(options)).value();
}

}  // namespace

TEST_CASE("Without a rule every byte comes through, and the end of each side") {
  Server server(echo);
  const auto proxy = proxy_of(server, "");
  const auto client = connect_to(proxy->address());
  std::string text;
  for (int i = 0; i < 300'000; ++i)
    text += std::to_string(i);
  std::thread writer([&] {
    client.send(text);
    client.end();
  });
  const auto got = client.all();
  writer.join();
  CHECK(errno == 0);
  CHECK(got == text);
  CHECK(proxy->connections() == 1);
}

TEST_CASE("Who does not read holds back who writes") {
  std::promise<std::size_t> held_back;
  Server server([&](const Socket& socket) {
    const timeval limit{0, 200'000};
    ::setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const std::string piece(16 * 1024, 'x');
    std::size_t sent = 0;
    while (sent < (std::size_t{64} << 20)) {
      const auto n = ::send(socket.fd(), piece.data(), piece.size(), MSG_NOSIGNAL);
      if (n <= 0) break;  // nothing is taken any more
      sent += static_cast<std::size_t>(n);
    }
    held_back.set_value(sent);
  });
  const auto proxy = proxy_of(server, "");
  const auto client = connect_to(proxy->address());
  const auto sent = held_back.get_future().get();
  CHECK(sent < (std::size_t{32} << 20));
  CHECK(client.all().size() == sent);
}

TEST_CASE("A connection is reset after so many bytes, or after a pattern") {
  Server server(echo);
  SECTION("bytes") {
    const auto proxy = proxy_of(server, "{nth: 2, do: cut, after: 5}");
    const auto first = connect_to(proxy->address());
    first.send("hello world");
    CHECK(first.exactly(11) == "hello world");
    const auto second = connect_to(proxy->address());
    second.send("hello world");
    const auto got = second.all();
    CHECK(errno == ECONNRESET);
    // A reset may overtake what was sent before it.
    CHECK((got == "hello" || got.empty()));
    CHECK(proxy->struck(0) == 1);
  }
  SECTION("a pattern in two pieces") {
    const auto proxy = proxy_of(server, "{do: cut, direction: up, pattern: '[end]'}");
    const auto client = connect_to(proxy->address());
    client.send("abc[e");
    CHECK(client.exactly(5) == "abc[e");  // who waits for its answer gets it
    client.send("x[en");
    CHECK(client.exactly(4) == "x[en");
    CHECK(client.is_reset_by("d]more"));
    CHECK(proxy->struck(0) == 1);
  }
  SECTION("what may begin the pattern of a refusal waits") {
    const auto proxy = proxy_of(server, "{do: refuse, pattern: '[end]'}");
    const auto client = connect_to(proxy->address());
    client.send("abc[e");
    CHECK(client.exactly(3) == "abc");
    CHECK(client.quiet());
    client.send("x[en");
    CHECK(client.exactly(3) == "[ex");
    CHECK(client.is_reset_by("d]more"));
    CHECK(proxy->struck(0) == 1);
  }
}

TEST_CASE("A connection is refused before anything is delivered") {
  std::mutex mutex;
  std::string delivered;
  Server server([&](const Socket& socket) {
    for (auto piece = socket.some(); !piece.empty(); piece = socket.some()) {
      const std::lock_guard lock(mutex);
      delivered += piece;
      socket.send(piece);
    }
  });
  const auto proxy =
      proxy_of(server, "{nth: 1, do: refuse}, {nth: 2, do: refuse, pattern: secret}");
  const auto first = connect_to(proxy->address());
  CHECK(first.is_reset_by("first"));
  const auto second = connect_to(proxy->address());
  second.send("open ");
  CHECK(second.exactly(5) == "open ");
  CHECK(second.is_reset_by("a secret"));
  const auto third = connect_to(proxy->address());
  third.send("third");
  CHECK(third.exactly(5) == "third");
  const std::lock_guard lock(mutex);
  CHECK(delivered.find("first") == std::string::npos);
  CHECK(delivered.find("secret") == std::string::npos);
  CHECK(proxy->struck(0) == 1);
  CHECK(proxy->struck(1) == 1);
}

TEST_CASE("In a black hole bytes vanish and the connection stays") {
  Server server(echo);
  const auto proxy = proxy_of(server, "{do: black_hole, direction: down, after: 3}");
  const auto client = connect_to(proxy->address());
  client.send("hello");
  CHECK(client.exactly(3) == "hel");
  CHECK(client.send("more"));
  CHECK(client.quiet());
  CHECK(proxy->struck(0) == 1);
}

TEST_CASE("Bytes come late, all of them") {
  Server server(echo);
  const auto proxy = proxy_of(server, "{do: delay, ms: 5}");
  const auto client = connect_to(proxy->address());
  const auto begin = std::chrono::steady_clock::now();
  client.send("late");
  CHECK(client.exactly(4) == "late");
  client.send("later");
  CHECK(client.exactly(5) == "later");
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(10));
  CHECK(proxy->struck(0) == 1);
}

TEST_CASE("A request is delivered and its answer replaced") {
  std::mutex mutex;
  std::vector<std::string> requests;
  Server server([&](const Socket& socket) {
    for (auto piece = socket.some(); !piece.empty(); piece = socket.some()) {
      {
        const std::lock_guard lock(mutex);
        requests.push_back(piece);
      }
      socket.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  const auto proxy =
      proxy_of(server, "{nth: 1, do: answer, status: 429, retryAfter: 7, pattern: 'POST /run'}");
  const auto client = connect_to(proxy->address());
  client.send("GET / HTTP/1.1\r\n\r\n");
  const std::string fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  CHECK(client.exactly(fine.size()) == fine);
  client.send("POST /run HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  CHECK(client.all() ==
        "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\n"
        "Retry-After: 7\r\n\r\n");
  CHECK(errno == 0);
  const std::lock_guard lock(mutex);
  REQUIRE(requests.size() == 2);
  CHECK(requests[1] == "POST /run HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  CHECK(proxy->struck(0) == 1);
}

TEST_CASE("A proxy on a unix socket is for its user alone, and takes its file with it") {
  Server server(echo);
  FaultProxy::Options options;
  options.listen.path = server.path("proxy");
  options.to = server.address;
  auto proxy = FaultProxy::open(options).value();
  struct stat st {};
  REQUIRE(::lstat(options.listen.path.c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  const auto client = connect_to(proxy->address());
  client.send("x");
  CHECK(client.exactly(1) == "x");
  const auto second = FaultProxy::open(options);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == Status::unavailable);
  // Ends with a connection open.
  proxy.reset();
  CHECK(client.all().empty());
  CHECK(::lstat(options.listen.path.c_str(), &st) != 0);
}

TEST_CASE("More connections than allowed wait for one that ends") {
  Server server(echo);
  FaultProxy::Options options;
  options.listen = parse_proxy_address("tcp:127.0.0.1:0", false).value();
  options.to = server.address;
  options.max_connections = 1;
  const auto proxy = FaultProxy::open(options).value();
  {
    const auto first = connect_to(proxy->address());
    first.send("1");
    CHECK(first.exactly(1) == "1");
    const auto second = connect_to(proxy->address());
    second.send("2");
    CHECK(second.quiet());
    CHECK(proxy->connections() == 1);
  }
  const auto third = connect_to(proxy->address());
  third.send("3");
  CHECK(third.exactly(1) == "3");
}

TEST_CASE("Where no thread can be made, the proxy says so and leaves nothing behind") {
#ifdef __SANITIZE_THREAD__
  WARN("SKIPPED: the sanitizer itself needs a thread");
#else
  test::TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms::all);
  FaultProxy::Options options;
  options.listen.path = dir.path() / "proxy";
  options.to.path = dir.path() / "server";
  // A process whose user may have no other, nor a thread. Root has no such limit.
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit one{1, 1};
    if (::geteuid() == 0 && ::setuid(54330) != 0) ::_exit(1);
    if (::setrlimit(RLIMIT_NPROC, &one) != 0) ::_exit(2);
    const auto opened = FaultProxy::open(options);
    if (opened) ::_exit(3);
    const Error& error = opened.error();
    ::_exit(error.code == Status::unavailable && error.reason == "proxy.no_thread" ? 0 : 4);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(std::filesystem::is_empty(dir.path()));
#endif
}
