// One request over the http service, as a class with virtual functions.
#pragma once

#include <sandforge/ext/host_http.h>

#include <vector>

#include "skeleton.hpp"

namespace sandforge::rehearsal {

struct Request {
  std::string method;
  std::string target;
  std::string body;
  std::uint32_t flags = 0;
  std::uint64_t window = 1 << 16;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string subprotocols{};
};

// Deletes itself after done.
class HttpCall {
 public:
  virtual ~HttpCall() {
    if (stream_ != nullptr) stream_->vtbl->release(stream_);
  }
  HttpCall() = default;
  HttpCall(const HttpCall&) = delete;
  HttpCall& operator=(const HttpCall&) = delete;

  // False when it was refused; then the object is still the caller's.
  bool send(sf_http_client* client, const Request& request, const sf_error_sink* err) {
    std::vector<sf_http_header> headers;
    for (const auto& [name, value] : request.headers)
      headers.push_back({bytes(name), bytes(value)});
    sf_http_request r{};
    r.struct_size = sizeof r;
    r.method = str(request.method);
    r.target = str(request.target);
    r.headers = headers.data();
    r.header_count = headers.size();
    r.body = bytes(request.body);
    r.flags = request.flags;
    r.window = request.window;
    r.subprotocols = str(request.subprotocols);
    const sf_stream_events io{
        sizeof io, this,
        [](void* c, std::uint32_t, std::uint32_t flags, sf_bytes data) noexcept {
          of(c).on_data(flags, {reinterpret_cast<const char*>(data.ptr), data.len});
        },
        [](void* c) noexcept { of(c).on_writable(); },
        [](void* c, const sf_error* e, const sf_stream_end*) noexcept {
          of(c).on_done(e);
          delete &of(c);
        }};
    const sf_http_events events{
        sizeof events, this,
        [](void* c, const sf_http_response* response) noexcept { of(c).on_response(*response); },
        [](void* c, const sf_http_end* end) noexcept { of(c).on_end(*end); }};
    const auto* http = service<sf_http_service>(SF_SERVICE_HTTP);
    return http->request(client, &r, &io, &events, &stream_, err) == SF_OK;
  }

  sf_stream* stream() const { return stream_; }
  void grant(std::uint64_t n) const { stream_->vtbl->grant(stream_, n); }

 protected:
  virtual void on_response(const sf_http_response&) {}
  virtual void on_data(std::uint32_t flags, std::string_view data) = 0;
  virtual void on_writable() {}
  virtual void on_end(const sf_http_end&) {}
  virtual void on_done(const sf_error* error) = 0;

 private:
  static HttpCall& of(void* ctx) { return *static_cast<HttpCall*>(ctx); }
  sf_stream* stream_ = nullptr;
};

// A request with a short answer, given to a function: status 0 when it failed.
class ShortCall : public HttpCall {
 public:
  using Then = std::function<void(std::uint32_t status, const std::string& body)>;
  static bool start(sf_http_client* client, const Request& request, Then then,
                    const sf_error_sink* err) {
    auto* call = new ShortCall(std::move(then));
    const bool sent = call->send(client, request, err);
    if (!sent) delete call;
    return sent;
  }

 private:
  explicit ShortCall(Then then) : then_(std::move(then)) {}
  void on_response(const sf_http_response& r) override { status_ = r.status; }
  void on_data(std::uint32_t, std::string_view data) override {
    body_ += data;
    grant(data.size());
  }
  void on_done(const sf_error* e) override { then_(e == nullptr ? status_ : 0, body_); }

  Then then_;
  std::uint32_t status_ = 0;
  std::string body_;
};

// The value after "key": in a small answer. Enough for a skeleton.
inline std::string value_of(std::string_view json, std::string_view key) {
  const auto at = json.find("\"" + std::string(key) + "\":");
  if (at == std::string_view::npos) return {};
  auto begin = at + key.size() + 3;
  const bool quoted = json[begin] == '"';
  begin += quoted ? 1 : 0;
  return std::string(json.substr(begin, json.find_first_of(quoted ? "\"" : ",}", begin) - begin));
}

// A client for one base address, released with its owner on the lane.
class Client {
 public:
  Client(sf_lane* lane, std::string_view base_url) {
    sf_http_client_options options{};
    options.struct_size = sizeof options;
    options.base_url = str(base_url);
    options.max_connections = 4;
    const auto* http = service<sf_http_service>(SF_SERVICE_HTTP);
    http->client_create(host, lane, &options, &client_, nullptr);
  }
  ~Client() { service<sf_http_service>(SF_SERVICE_HTTP)->client_release(client_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  sf_http_client* get() const { return client_; }

 private:
  sf_http_client* client_ = nullptr;
};

}  // namespace sandforge::rehearsal
