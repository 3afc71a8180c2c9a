// A server that does byte for byte what a test says, and a plugin that sends requests to it.
#pragma once

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "plugin/abi_lane.hpp"
#include "plugin/abi_text.hpp"
#include "sandforge/ext/host_http.h"
#include "unit/loader/fake_plugin.hpp"

namespace sandforge::test {

// One connection, as the server has it. Waits at most a minute for anything.
class Peer {
 public:
  explicit Peer(int socket) : socket_(socket) {}
  ~Peer() { close(); }
  Peer(Peer&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), kept_(std::move(other.kept_)) {}
  Peer& operator=(Peer&&) = delete;

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) throw std::runtime_error("the client takes no more");
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  // Up to and with `end`.
  std::string read_to(const std::string& end) {
    for (;;) {
      const auto at = kept_.find(end);
      if (at != std::string::npos) return take(at + end.size());
      if (!more()) return take(kept_.size()) + "<end>";
    }
  }
  std::string head() { return read_to("\r\n\r\n"); }
  std::string read(std::size_t size) {
    while (kept_.size() < size)
      if (!more()) return take(kept_.size()) + "<end>";
    return take(size);
  }
  std::string read_all() {
    while (more()) {
    }
    return take(kept_.size());
  }
  void shutdown() { ::shutdown(socket_, SHUT_WR); }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void reset() {
    const linger now{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close();
  }
  int socket() const { return socket_; }

 private:
  std::string take(std::size_t size) {
    std::string out = kept_.substr(0, size);
    kept_.erase(0, size);
    return out;
  }
  bool more() {
    pollfd state{socket_, POLLIN, 0};
    if (::poll(&state, 1, 60'000) != 1) throw std::runtime_error("the client says nothing");
    char buffer[65536];
    const ssize_t n = ::recv(socket_, buffer, sizeof(buffer), 0);
    if (n <= 0) return false;
    kept_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  int socket_;
  std::string kept_;
};

class Server {
 public:
  // At 127.0.0.1, or at the path of a unix socket.
  explicit Server(const std::string& path = {}, int backlog = 16) {
    if (path.empty()) {
      socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0);
      socklen_t size = sizeof(at);
      REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
      port = std::to_string(ntohs(at.sin_port));
      url = "http://127.0.0.1:" + port;
    } else {
      socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un at{};
      at.sun_family = AF_UNIX;
      std::strncpy(at.sun_path, path.c_str(), sizeof(at.sun_path) - 1);
      REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0);
      url = "unix://" + path;
    }
    REQUIRE(::listen(socket_, backlog) == 0);
  }
  // One that listens already.
  explicit Server(int socket) : socket_(socket) {}
  ~Server() { close(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Peer accept() { return Peer(take()); }
  // One whose request has come, as far as its head.
  Peer accept_request() {
    Peer peer = accept();
    peer.head();
    return peer;
  }
  // The same as a socket, which is the caller's.
  int take() {
    pollfd state{socket_, POLLIN, 0};
    if (::poll(&state, 1, 60'000) != 1) throw std::runtime_error("nobody connects");
    return ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  }
  bool somebody_waits() const {
    pollfd state{socket_, POLLIN, 0};
    return ::poll(&state, 1, 0) == 1;
  }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

  std::string url;
  std::string port;  // of tcp

 private:
  int socket_ = -1;
};

struct Ask {
  std::string method = "GET";
  std::string target = "/";
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
  std::uint32_t flags = 0;
  std::uint64_t timeout_ms = 0;
  std::uint64_t idle_timeout_ms = 0;
  std::uint64_t window = 1U << 20;
  std::uint64_t total_timeout_ms = 0;
  std::uint64_t ping_ms = 0;
  std::uint64_t close_timeout_ms = 0;
  std::string subprotocols{};
};

// One request and all that it hears.
class Call {
 public:
  Call(Lane lane, bool gives_back) : lane_(std::move(lane)), gives_back_(gives_back) {}

  sf_stream_events io() {
    return {sizeof(sf_stream_events), this,
            [](void* c, std::uint32_t channel, std::uint32_t flags, sf_bytes data) noexcept {
              Call& me = of(c);
              me.change([&] {
                const bool ends = (flags & SF_DATA_END) != 0;
                me.wrong = me.wrong || channel != SF_CHANNEL_DATA || (data.len == 0 && !ends);
                const auto text = plugin::view(data);
                me.body.append(text);
                me.message_so_far += text;
                if (!ends) return;
                const char* kind = (flags & SF_DATA_TEXT) != 0 ? "text " : "binary ";
                me.messages.push_back(kind + std::exchange(me.message_so_far, {}));
              });
              if (me.gives_back_) me.stream->vtbl->grant(me.stream, data.len);
            },
            [](void* c) noexcept {
              Call& me = of(c);
              me.change([&] { ++me.writables; });
              if (me.on_writable) me.on_writable();
            },
            [](void* c, const sf_error* error, const sf_stream_end* end) noexcept {
              Call& me = of(c);
              me.change([&] {
                me.wrong = me.wrong || !me.ended;
                me.done = true;
                me.delivered = end->delivered;
                me.dropped = end->dropped;
                if (error == nullptr) return;
                me.code = error->code;
                me.message = copy(error->message);
                me.may_have_started = (error->flags & SF_ERROR_MAY_HAVE_STARTED) != 0;
              });
            }};
  }
  sf_http_events http() {
    return {sizeof(sf_http_events), this,
            [](void* c, const sf_http_response* response) noexcept {
              Call& me = of(c);
              me.change([&] {
                me.wrong = me.wrong || me.status != 0 || !me.body.empty();
                me.status = response->status;
                me.upgraded = response->upgraded;
                me.subprotocol = copy(response->subprotocol);
                for (std::size_t i = 0; i < response->header_count; ++i) {
                  const auto& h = response->headers[i];
                  me.headers += std::string(plugin::view(h.name)) + ": " +
                                std::string(plugin::view(h.value)) + "\n";
                }
              });
            },
            [](void* c, const sf_http_end* end) noexcept {
              Call& me = of(c);
              me.change([&] {
                me.wrong = me.wrong || me.ended;
                me.ended = true;
                me.phase = end->phase;
                me.close_code = end->close_code;
                me.close_reason = copy(end->close_reason);
              });
            }};
  }
  template <class F>
  bool until(F f) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return f(); });
  }
  int writables_so_far() {
    const std::lock_guard lock(mutex_);
    return writables;
  }
  bool until_done() {
    return until([this] { return done; }) && !wrong;
  }

  sf_stream* stream = nullptr;
  std::function<void()> on_writable;
  std::string body;
  std::vector<std::string> messages;  // "text …" and "binary …", of a WebSocket
  std::string message_so_far;
  std::string headers;
  std::string subprotocol;
  std::uint32_t status = 0;
  std::uint32_t upgraded = 0;
  int writables = 0;
  bool ended = false;
  bool done = false;
  bool wrong = false;  // off the lane, out of order, or after the end
  sf_status code = SF_OK;
  std::string message;
  bool may_have_started = false;
  std::uint32_t phase = 99;
  std::uint32_t close_code = 0;
  std::string close_reason;
  std::uint64_t delivered = 0;
  std::uint64_t dropped = 0;

 private:
  static Call& of(void* ctx) { return *static_cast<Call*>(ctx); }
  template <class F>
  void change(F f) {
    // Whoever waits may end this object as soon as the lock is free.
    const std::lock_guard lock(mutex_);
    wrong = wrong || !lane_.is_current() || done;
    f();
    changed_.notify_all();
  }
  const Lane lane_;
  const bool gives_back_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

class HttpBench {
 public:
  HttpBench() : lane(bench.sandbox_lane) {
    sf_host* host = &bench.plugin->host;
    http = static_cast<const sf_http_service*>(host->vtbl->service(host, str(SF_SERVICE_HTTP)));
    REQUIRE(http != nullptr);
  }
  explicit HttpBench(const std::string& url, std::uint32_t most = 4) : HttpBench() {
    REQUIRE(open(url, most) == SF_OK);
  }
  ~HttpBench() {
    for (auto& call : calls)
      if (call->stream != nullptr) call->stream->vtbl->cancel(call->stream);
    for (auto& call : calls) {
      if (call->stream == nullptr) continue;
      CHECK(call->until_done());
      call->stream->vtbl->release(call->stream);
    }
    release();
    bench.settle(lane);
  }
  HttpBench(const HttpBench&) = delete;
  HttpBench& operator=(const HttpBench&) = delete;

  sf_status open(const std::string& url, std::uint32_t most = 4, std::uint64_t connect_ms = 0) {
    sf_http_client_options options{};
    options.max_connections = most;
    options.connect_timeout_ms = connect_ms;
    return open(url, options);
  }
  sf_status open(const std::string& url, sf_http_client_options options) {
    options.struct_size = sizeof(options);
    options.base_url = plugin::to_str(url);
    const sf_error_sink sink = errors();
    return http->client_create(&bench.plugin->host, lane_object.get(), &options, &client, &sink);
  }
  void release() {
    if (client != nullptr)
      bench.on(lane, [&] { http->client_release(std::exchange(client, nullptr)); });
  }
  // `gives_back`: what was delivered is granted anew.
  Call& send(const Ask& ask, bool gives_back = true) {
    auto call = std::make_unique<Call>(lane, gives_back);
    Call& me = *call;
    const sf_status status = begin(ask, me);
    INFO(error);
    REQUIRE(status == SF_OK);
    calls.push_back(std::move(call));
    return me;
  }
  sf_status begin(const Ask& ask, Call& call) {
    return bench.on(lane, [&] { return begin_here(ask, call); });
  }
  // On the lane.
  sf_status begin_here(const Ask& ask, Call& call) {
    std::vector<sf_http_header> headers;
    for (const auto& [name, value] : ask.headers)
      headers.push_back({plugin::to_bytes(name), plugin::to_bytes(value)});
    sf_http_request request{};
    request.struct_size = sizeof(request);
    request.method = plugin::to_str(ask.method);
    request.target = plugin::to_str(ask.target);
    request.headers = headers.data();
    request.header_count = headers.size();
    request.body = plugin::to_bytes(ask.body);
    request.flags = ask.flags;
    request.timeout_ms = ask.timeout_ms;
    request.idle_timeout_ms = ask.idle_timeout_ms;
    request.window = ask.window;
    request.total_timeout_ms = ask.total_timeout_ms;
    request.ping_ms = ask.ping_ms;
    request.close_timeout_ms = ask.close_timeout_ms;
    request.subprotocols = plugin::to_str(ask.subprotocols);
    const auto io = call.io();
    const auto events = call.http();
    const sf_error_sink sink = errors();
    return http->request(client, &request, &io, &events, &call.stream, &sink);
  }
  std::pair<sf_status, std::size_t> write(Call& call, std::string_view text,
                                          std::uint32_t flags = 0) {
    return bench.on(lane, [&] {
      std::size_t accepted = 12345;
      const sf_status status = call.stream->vtbl->write(
          call.stream, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, flags,
          &accepted, nullptr);
      return std::pair(status, accepted);
    });
  }
  sf_status shutdown(Call& call) {
    return bench.on(lane, [&] { return call.stream->vtbl->shutdown_write(call.stream, nullptr); });
  }
  sf_error_sink errors() {
    return {this, [](void* c, const sf_error* e) noexcept {
              static_cast<HttpBench*>(c)->error = copy(e->message);
            }};
  }

  Bench bench{std::vector<std::string>{"http"}};
  Lane lane;
  plugin::LaneRef lane_object{*bench.plugin, lane};
  const sf_http_service* http = nullptr;
  sf_http_client* client = nullptr;
  std::string error;
  std::vector<std::unique_ptr<Call>> calls;
};

inline std::string answer(const std::string& body, const std::string& more = {}) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + more +
         "\r\n" + body;
}

}  // namespace sandforge::test
