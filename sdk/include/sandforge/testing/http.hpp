// The http service of the fake host: requests are recorded, and answered by a script.
#pragma once

#include <sandforge/ext/host_http.h>

#include "stream.hpp"

namespace sandforge::testing {

// A request as the server sees it.
struct HttpRequest {
  HttpRequest() {}
  std::string base_url;
  std::string method;
  std::string target;  // path and query
  Pairs headers;
  std::string body;
  std::string subprotocols;
  std::uint32_t flags = 0;
  std::uint64_t total_timeout_ms = 0;
  // Of its client.
  std::string proxy_url;
  std::uint64_t user_timeout_ms = 0;
  std::uint64_t keepalive_ms = 0;

  // Of the first header of that name, whatever its case; empty: there is none.
  std::string header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (same_name(key, name)) return value;
    }
    return {};
  }
  static bool same_name(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](char x, char y) { return lower(x) == lower(y); });
  }
};

// A request that waits for its answer. Its functions may be called on any thread.
struct Exchange : HttpRequest {
  sf_http_events events{};
  std::shared_ptr<Stream> stream;

  void respond(std::uint32_t status, bool upgraded = false, std::string subprotocol = {},
               Pairs fields = {}) const {
    stream->push_call([events = events, status, upgraded, subprotocol, fields] {
      std::vector<sf_http_header> raw;
      for (const auto& [name, value] : fields)
        raw.push_back({bytes(name), bytes(value)});
      const sf_http_response response{sizeof response, status,     upgraded ? 1U : 0U,
                                      raw.data(),      raw.size(), str(subprotocol)};
      events.on_response(events.ctx, &response);
    });
  }
  void send(std::string data, std::uint32_t data_flags = 0) const {
    stream->push(SF_CHANNEL_DATA, data_flags, std::move(data));
  }
  // phase: SF_HTTP_*. With a failure, from SF_HTTP_MAYBE_SENT on, the request may have had its
  // effect, and the error says so.
  void end(std::uint32_t phase = SF_HTTP_BODY, Failure failure = {},
           std::uint32_t close_code = 0) const {
    if (failure && phase >= SF_HTTP_MAYBE_SENT) failure.flags |= SF_ERROR_MAY_HAVE_STARTED;
    stream->push_call([events = events, phase, close_code] {
      sf_http_end end{};
      end.struct_size = sizeof end;
      end.phase = phase;
      end.close_code = close_code;
      events.on_end(events.ctx, &end);
    });
    stream->finish(std::move(failure));
  }
  // A whole answer.
  void answer(std::uint32_t status, std::string content) const {
    respond(status);
    send(std::move(content));
    end();
  }
};

/*
 * One line of the script: what a request must be like, and what it is answered. Used once. By
 * default the answer is 200 without content.
 *
 *   http.expect("POST", "/v1/boxes").with_header("X-Key", "k").answer(201, R"({"id":"b1"})");
 *   http.expect("GET", "/v1/boxes/b1").fail(SF_HTTP_NOT_SENT, SF_TRANSPORT_LOST, "reset");
 *   http.expect("GET", "/v1/log").answer(200, "the first ha").fail(SF_HTTP_BODY, …);
 */
class HttpRule {
 public:
  HttpRule(std::string method, std::string target)
      : method_(std::move(method)), target_(std::move(target)) {}

  HttpRule& with_header(std::string name, std::string value) {
    headers_.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  HttpRule& with_body(std::string body) {
    body_ = std::move(body);
    return *this;
  }
  HttpRule& answer(std::uint32_t status, std::string content = {}) {
    status_ = status;
    content_ = std::move(content);
    return *this;
  }
  HttpRule& answer_header(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  // The connection after an upgrade, on which the other end says this, and ends.
  HttpRule& upgrade(std::string content = {}) {
    upgraded_ = true;
    return answer(101, std::move(content));
  }
  // Ends in an error at this phase (SF_HTTP_*). Before SF_HTTP_HEAD nothing is answered, at
  // SF_HTTP_HEAD the head alone, at SF_HTTP_BODY the content is cut off where it ends.
  HttpRule& fail(std::uint32_t phase, sf_status code, std::string message) {
    phase_ = phase;
    failure_ = Failure(code, std::move(message));
    return *this;
  }

  std::string name() const { return method_ + " " + target_; }
  bool used() const { return used_; }
  bool fits(const HttpRequest& request) const {
    if (used_ || request.method != method_ || request.target != target_) return false;
    if (body_ && request.body != *body_) return false;
    return std::all_of(headers_.begin(), headers_.end(), [&](const auto& wanted) {
      return request.header(wanted.first) == wanted.second;
    });
  }
  void play(const Exchange& exchange) {
    used_ = true;
    if (phase_ >= SF_HTTP_HEAD) exchange.respond(status_, upgraded_, {}, fields_);
    if (phase_ >= SF_HTTP_BODY) exchange.send(content_);
    exchange.end(phase_, failure_);
  }

 private:
  std::string method_;
  std::string target_;
  Pairs headers_;
  std::optional<std::string> body_;
  std::uint32_t status_ = 200;
  bool upgraded_ = false;
  std::string content_;
  Pairs fields_;
  std::uint32_t phase_ = SF_HTTP_BODY;
  Failure failure_;
  bool used_ = false;
};

/*
 * Answers each request by the first line of the script that fits and is unused. A request that none
 * fits ends in SF_INTERNAL before it was sent, and is listed by unexpected(). To answer by code,
 * set handler: it gets every request, on its lane, instead of the script.
 */
class HttpService : public sf_http_service {
 public:
  static inline std::atomic<int> live_clients{0};
  using Handler = std::function<void(const std::shared_ptr<Exchange>&)>;
  Handler handler;

  HttpRule& expect(std::string method, std::string target) {
    const std::lock_guard lock(mutex_);
    return script_.emplace_back(std::move(method), std::move(target));
  }
  // Every request so far, in its order.
  std::vector<HttpRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // "GET /path" of requests that no line fitted, and of lines that no request came for.
  std::vector<std::string> unexpected() const {
    const std::lock_guard lock(mutex_);
    return unexpected_;
  }
  std::vector<std::string> unused() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const HttpRule& rule : script_)
      if (!rule.used()) names.push_back(rule.name());
    return names;
  }

  HttpService() {
    struct_size = sizeof(sf_http_service);
    client_create = nullptr;  // the host's
    client_release = [](sf_http_client* client) noexcept {
      delete reinterpret_cast<Client*>(client);
    };
    request = [](sf_http_client* client, const sf_http_request* asked, const sf_stream_events* io,
                 const sf_http_events* events, sf_stream** out,
                 const sf_error_sink* err) noexcept -> sf_status {
      auto& me = *reinterpret_cast<Client*>(client);
      if (!me.lane.is_current()) return refuse(err, SF_INVALID, "request: not on the lane");
      *out = me.service.begin(me, *asked, *io, *events);
      return SF_OK;
    };
  }
  sf_http_client* create(Lane& lane, const sf_http_client_options& options) {
    return reinterpret_cast<sf_http_client*>(new Client(*this, lane, options));
  }

 private:
  struct Client {
    HttpService& service;
    Lane& lane;
    HttpRequest request;  // what all of its requests have
    Client(HttpService& of, Lane& on, const sf_http_client_options& options)
        : service(of), lane(on) {
      request.base_url = text(options.base_url);
      if (SF_HAS(&options, proxy_url)) request.proxy_url = text(options.proxy_url);
      request.user_timeout_ms = options.user_timeout_ms;
      request.keepalive_ms = options.keepalive_ms;
      lane.retain();
      ++live_clients;
    }
    ~Client() {
      lane.release();
      --live_clients;
    }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
  };

  sf_stream* begin(Client& client, const sf_http_request& asked, const sf_stream_events& io,
                   const sf_http_events& events) {
    auto exchange = std::make_shared<Exchange>();
    static_cast<HttpRequest&>(*exchange) = client.request;
    exchange->method = text(asked.method);
    exchange->target = text(asked.target);
    exchange->body = text(asked.body);
    exchange->flags = asked.flags;
    exchange->subprotocols = text(asked.subprotocols);
    if (SF_HAS(&asked, total_timeout_ms)) exchange->total_timeout_ms = asked.total_timeout_ms;
    for (std::size_t i = 0; i < asked.header_count; ++i)
      exchange->headers.emplace_back(text(asked.headers[i].name), text(asked.headers[i].value));
    exchange->events = events;
    exchange->stream = Stream::create(client.lane, io, asked.window);
    if (handler) {
      client.lane.post([this, exchange, by = handler] {
        record(*exchange);
        by(exchange);
      });
    } else if ((asked.flags & SF_HTTP_STREAM_BODY) != 0) {
      // The whole body first. The stream drops these functions when it is over.
      exchange->stream->on_write = [exchange](std::string_view piece, std::uint32_t) {
        exchange->body += piece;
        return piece.size();
      };
      exchange->stream->on_shutdown = [this, exchange] { play(*exchange); };
    } else {
      client.lane.post([this, exchange] { play(*exchange); });
    }
    return exchange->stream.get();
  }

  void record(const HttpRequest& asked) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(asked);
  }
  void play(const Exchange& exchange) {
    record(exchange);
    const std::lock_guard lock(mutex_);
    for (HttpRule& rule : script_)
      if (rule.fits(exchange)) return rule.play(exchange);
    const std::string name = exchange.method + " " + exchange.target;
    unexpected_.push_back(name);
    exchange.end(SF_HTTP_NOT_SENT, Failure(SF_INTERNAL, "the test expects no " + name));
  }

  mutable std::mutex mutex_;
  std::deque<HttpRule> script_;
  std::vector<HttpRequest> requests_;
  std::vector<std::string> unexpected_;
};

}  // namespace sandforge::testing
