// The host's http client, for requests whose answers are taken whole. Both styles: a blocking
// author calls send(…).get(stop), a coroutine awaits send(…). Answers that are streams, and
// upgrades to a raw connection: http_stream.hpp.
#pragma once

#include <map>
#include <vector>

#include "async.hpp"

namespace sandforge::plugin {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Where requests go. Texts that are empty: the system's, or none.
class HttpOptions {
 public:
  HttpOptions() {}
  explicit HttpOptions(std::string url) : base_url(std::move(url)) {}
  std::string base_url;  // http, https, or unix:///path
  std::string ca_pem;
  std::string client_cert_pem;  // secret
  std::string client_key_pem;   // secret
  std::string proxy_url;        // secret; http://[USER:PASSWORD@]HOST:PORT
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds user_timeout{0};  // for bytes that nobody acknowledges; 0: the system's
  std::chrono::milliseconds keepalive{0};     // of TCP, after so long without a byte; 0: off
  std::uint32_t max_connections = 8;
};

class HttpRequest {
 public:
  HttpRequest() {}
  HttpRequest(std::string how, std::string where, std::string content = {})
      : method(std::move(how)), target(std::move(where)), body(std::move(content)) {}
  std::string method = "GET";
  std::string target = "/";  // path and query, percent-encoded
  std::string body;
  HttpHeaders headers;
  std::chrono::milliseconds timeout{30'000};       // to the head of the answer; 0: none
  std::chrono::milliseconds idle_timeout{30'000};  // between its bytes; 0: none
  std::chrono::milliseconds total_timeout{0};      // from send to the whole answer; 0: none
  std::uint64_t max_answer = 1 << 20;              // bytes; a longer one is Code::no_space
  bool fresh_connection = false;                   // for what must not run twice
};

class HttpAnswer {
 public:
  HttpAnswer() {}
  std::uint32_t status = 0;
  HttpHeaders headers;
  std::string body;

  // Of the first header of that name, whatever its case; empty: there is none.
  std::string_view header(std::string_view name) const noexcept {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
    for (const auto& [key, value] : headers) {
      if (std::equal(key.begin(), key.end(), name.begin(), name.end(),
                     [&](char a, char b) { return lower(a) == lower(b); }))
        return value;
    }
    return {};
  }

  /*
   * An answer below 400 passes. Any other throws: 401 as Code::unauthenticated, 403 forbidden, 404
   * not_found, 409 conflict, 410 gone, 429 rate_limited with its Retry-After, another 4xx invalid,
   * 5xx unavailable and may_have_started. `what` is what was tried: "create the box".
   */
  void throw_if_refused(std::string_view what) const {
    if (status < 400) return;
    Error error(code_of(status),
                "cannot " + std::string(what) + ": the service answered " + std::to_string(status));
    error.detail("httpStatus", static_cast<long long>(status));
    error.may_have_started(status >= 500);
    const std::string_view retry = header("Retry-After");
    const bool seconds =
        !retry.empty() && retry.size() < 7 &&
        std::all_of(retry.begin(), retry.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (seconds) error.retry_after(std::chrono::seconds(std::stol(std::string(retry))));
    throw error;
  }

 private:
  static Code code_of(std::uint32_t status) {
    static const std::map<std::uint32_t, Code> known = {
        {401, Code::unauthenticated}, {403, Code::forbidden}, {404, Code::not_found},
        {409, Code::conflict},        {410, Code::gone},      {429, Code::rate_limited}};
    const auto found = known.find(status);
    if (found != known.end()) return found->second;
    return status >= 500 ? Code::unavailable : Code::invalid;
  }
};

namespace detail {

// A request as the boundary's struct, borrowing from it.
class HttpRequestView {
 public:
  explicit HttpRequestView(const HttpRequest& request, std::uint32_t flags = 0) {
    for (const auto& [name, value] : request.headers)
      headers_.push_back({to_bytes(name), to_bytes(value)});
    raw_.struct_size = sizeof raw_;
    raw_.method = to_str(request.method);
    raw_.target = to_str(request.target);
    raw_.headers = headers_.data();
    raw_.header_count = headers_.size();
    raw_.body = to_bytes(request.body);
    raw_.flags = flags | (request.fresh_connection ? SF_HTTP_FRESH_CONNECTION : 0);
    raw_.timeout_ms = static_cast<std::uint64_t>(request.timeout.count());
    raw_.idle_timeout_ms = static_cast<std::uint64_t>(request.idle_timeout.count());
    raw_.total_timeout_ms = static_cast<std::uint64_t>(request.total_timeout.count());
    raw_.window = 1 << 16;
  }
  HttpRequestView(const HttpRequestView&) = delete;
  HttpRequestView& operator=(const HttpRequestView&) = delete;
  const sf_http_request* get() const noexcept { return &raw_; }

 private:
  std::vector<sf_http_header> headers_;
  sf_http_request raw_{};
};

// One request. References: the host's from the start until done, and that of the handle for cancel.
class HttpExchange : public std::enable_shared_from_this<HttpExchange> {
 public:
  HttpExchange(HttpRequest request, Pending<HttpAnswer>* pending)
      : request_(std::move(request)), pending_(pending) {}

  // Writes the handle for a cancel.
  void give(sf_op** op) {
    if (op != nullptr) *op = new Handle(shared_from_this());
  }

  // On the lane of the client.
  void begin(sf_http_client* client) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (cancelled_) return pending_->fail(plain_error(SF_CANCELLED, "cancelled"));
    }
    const HttpRequestView raw(request_);
    const sf_stream_events io{sizeof io, this, on_data, [](void*) noexcept {}, on_done};
    const sf_http_events events{sizeof events, this, on_response,
                                [](void*, const sf_http_end*) noexcept {}};
    self_ = shared_from_this();
    ErrorCatcher errors;
    sf_stream* stream = nullptr;
    std::exception_ptr refused = thrown_in([&] {
      errors.check(need(services().http, SF_SERVICE_HTTP)
                       .request(client, raw.get(), &io, &events, &stream, errors.sink()));
    });
    if (refused) {
      self_.reset();
      return pending_->fail(std::move(refused));
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    stream_ = stream;
    if (cancelled_) stream_->vtbl->cancel(stream_);
  }

 private:
  struct Handle : sf_op {
    std::shared_ptr<HttpExchange> of;
    explicit Handle(std::shared_ptr<HttpExchange> what) : of(std::move(what)) {
      static constexpr sf_op_vtbl functions = {
          sizeof(sf_op_vtbl), [](sf_op* op) noexcept { static_cast<Handle*>(op)->of->cancel(); },
          [](sf_op* op) noexcept { delete static_cast<Handle*>(op); }};
      vtbl = &functions;
    }
  };

  void cancel() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    if (stream_ != nullptr) stream_->vtbl->cancel(stream_);
  }
  // The answer is of no use any more; what made it so is the result.
  void give_up(std::exception_ptr why) noexcept {
    if (!error_) error_ = std::move(why);
    cancel();
  }

  static HttpExchange& at(void* ctx) noexcept { return *static_cast<HttpExchange*>(ctx); }
  static void on_response(void* ctx, const sf_http_response* given) noexcept {
    HttpExchange& me = at(ctx);
    try {
      const auto response = read_appendable(given);
      me.answer_.status = response.status;
      for (std::size_t i = 0; i < response.header_count; ++i) {
        me.answer_.headers.emplace_back(copy(response.headers[i].name),
                                        copy(response.headers[i].value));
      }
    } catch (...) {
      me.give_up(std::current_exception());
    }
  }
  static void on_data(void* ctx, std::uint32_t, std::uint32_t, sf_bytes data) noexcept {
    HttpExchange& me = at(ctx);
    try {
      if (me.error_) return;
      if (me.answer_.body.size() + data.len > me.request_.max_answer) {
        throw Error(Code::no_space, "the answer is longer than " +
                                        std::to_string(me.request_.max_answer) + " bytes");
      }
      me.answer_.body.append(view(data));
    } catch (...) {
      return me.give_up(std::current_exception());
    }
    me.stream_->vtbl->grant(me.stream_, data.len);
  }
  static void on_done(void* ctx, const sf_error* error, const sf_stream_end*) noexcept {
    const std::shared_ptr<HttpExchange> me = std::move(at(ctx).self_);
    sf_stream* stream = nullptr;
    {
      const std::lock_guard<std::mutex> lock(me->mutex_);
      stream = std::exchange(me->stream_, nullptr);
    }
    stream->vtbl->release(stream);
    if (me->error_) {
      return with_error(me->error_, [&](sf_error why) {
        why.flags |= SF_ERROR_MAY_HAVE_STARTED;  // the service has answered
        me->pending_->fail(why);
      });
    }
    if (error != nullptr) return me->pending_->fail(*error);
    me->pending_->succeed(std::move(me->answer_));
  }

  const HttpRequest request_;
  Pending<HttpAnswer>* const pending_;
  std::shared_ptr<HttpExchange> self_;
  HttpAnswer answer_;
  std::exception_ptr error_;
  std::mutex mutex_;  // of what a cancel looks at
  sf_stream* stream_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace detail

/*
 * A client with its pool of connections. It belongs to a provider or a sandbox and ends with it, on
 * its lane. send may be called on any thread; the client must live until the request has begun.
 */
class HttpClient {
 public:
  // No I/O. Code::unsupported when the host has no http, or the manifest does not name it.
  HttpClient(const Lane& lane, const HttpOptions& options) : lane_(lane) {
    sf_http_client_options raw{};
    raw.struct_size = sizeof raw;
    raw.base_url = to_str(options.base_url);
    raw.ca_pem = to_str(options.ca_pem);
    raw.client_cert_pem = to_str(options.client_cert_pem);
    raw.client_key_pem = to_str(options.client_key_pem);
    raw.proxy_url = to_str(options.proxy_url);
    raw.connect_timeout_ms = static_cast<std::uint64_t>(options.connect_timeout.count());
    raw.user_timeout_ms = static_cast<std::uint64_t>(options.user_timeout.count());
    raw.keepalive_ms = static_cast<std::uint64_t>(options.keepalive.count());
    raw.max_connections = options.max_connections;
    detail::ErrorCatcher errors;
    errors.check(
        detail::need(detail::services().http, SF_SERVICE_HTTP)
            .client_create(detail::services().host, lane.get(), &raw, &client_, errors.sink()));
  }
  ~HttpClient() { detail::services().http->client_release(client_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // For the layer: where requests begin, on the lane.
  const Lane& lane() const noexcept { return lane_; }
  sf_http_client* get() const noexcept { return client_; }

  // Any status is an answer. What is thrown says by may_have_started whether the request may have
  // had its effect.
  Async<HttpAnswer> send(HttpRequest request) const {
    return {lane_, [client = client_, lane = lane_, request = std::move(request)](
                       auto* pending, sf_op** op, const sf_error_sink*) {
              const auto exchange = std::make_shared<detail::HttpExchange>(request, pending);
              exchange->give(op);
              if (lane.is_current()) {
                exchange->begin(client);
              } else {
                lane.post([exchange, client] { exchange->begin(client); });
              }
              return sf_status{SF_OK};
            }};
  }

  // For the layer. On the lane; a request that has begun goes on without its client.
  void begin(const std::shared_ptr<detail::HttpExchange>& exchange) const {
    exchange->begin(client_);
  }

 private:
  const Lane lane_;
  sf_http_client* client_ = nullptr;
};

}  // namespace sandforge::plugin
