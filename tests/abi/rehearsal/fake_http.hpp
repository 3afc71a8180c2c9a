// The http service of the fake host: a handler in the test answers each request.
#pragma once

#include <sandforge/ext/host_http.h>

#include "fake_stream.hpp"

namespace sandforge::fake {

// One request, seen from the server. Its functions may be called on any thread.
struct Exchange {
  std::string base_url;
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string subprotocols;
  std::uint32_t flags = 0;
  sf_http_events events{};
  std::shared_ptr<Stream> stream;

  std::string header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }

  void respond(std::uint32_t status, bool upgraded = false, std::string subprotocol = {}) const {
    stream->push_call([events = events, status, upgraded, subprotocol] {
      sf_http_response response{};
      response.struct_size = sizeof response;
      response.status = status;
      response.upgraded = upgraded ? 1 : 0;
      response.subprotocol = str(subprotocol);
      events.on_response(events.ctx, &response);
    });
  }
  void send(std::string data, std::uint32_t data_flags = 0) const {
    stream->push(SF_CHANNEL_DATA, data_flags, std::move(data));
  }
  void end(std::uint32_t phase = SF_HTTP_BODY, Failure failure = {},
           std::uint32_t close_code = 0) const {
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

class HttpService : public sf_http_service {
 public:
  static inline std::atomic<int> live_clients{0};
  using Handler = std::function<void(const std::shared_ptr<Exchange>&)>;
  Handler handler;

  HttpService() {
    struct_size = sizeof(sf_http_service);
    client_create = nullptr;
    client_release = [](sf_http_client* client) noexcept {
      delete reinterpret_cast<Client*>(client);
    };
    request = [](sf_http_client* client, const sf_http_request* asked, const sf_stream_events* io,
                 const sf_http_events* events, sf_stream** out,
                 const sf_error_sink* err) noexcept -> sf_status {
      auto& me = *reinterpret_cast<Client*>(client);
      if (!me.lane.is_current()) return refuse(err, SF_INVALID, "request: not on the lane");
      auto exchange = std::make_shared<Exchange>();
      exchange->base_url = me.base_url;
      exchange->method = text(asked->method);
      exchange->target = text(asked->target);
      exchange->body = text(asked->body);
      exchange->flags = asked->flags;
      exchange->subprotocols = text(asked->subprotocols);
      for (std::size_t i = 0; i < asked->header_count; ++i) {
        exchange->headers.emplace_back(text(asked->headers[i].name), text(asked->headers[i].value));
      }
      exchange->events = *events;
      exchange->stream = Stream::create(me.lane, *io, asked->window);
      *out = exchange->stream.get();
      me.lane.post([exchange, handler = me.service.handler] { handler(exchange); });
      return SF_OK;
    };
  }

  sf_http_client* create(Lane& lane, const sf_http_client_options& options) {
    return reinterpret_cast<sf_http_client*>(new Client{*this, lane, text(options.base_url)});
  }

 private:
  struct Client {
    HttpService& service;
    Lane& lane;
    std::string base_url;
    Client(HttpService& of, Lane& on, std::string url)
        : service(of), lane(on), base_url(std::move(url)) {
      lane.retain();
      ++live_clients;
    }
    ~Client() {
      lane.release();
      --live_clients;
    }
  };
};

}  // namespace sandforge::fake
