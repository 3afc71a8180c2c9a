// The http service: the C table over http::Client and http::Exchange.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "http/exchange.hpp"
#include "http/tls.hpp"
#include "plugin/abi_call.hpp"
#include "plugin/abi_lane.hpp"
#include "plugin/stream_events.hpp"
#include "sandforge/ext/host_http.h"
#include "services/plugin_host.hpp"

namespace sandforge::services {
namespace {

constexpr std::uint32_t kDefaultConnections = 8;
constexpr std::uint32_t kMostConnections = 1024;

// The plugin's handles.
struct ClientHandle {
  std::shared_ptr<http::Client> client;
  static ClientHandle& of(sf_http_client* client) noexcept {
    return *reinterpret_cast<ClientHandle*>(client);
  }
};

struct ExchangeHandle : sf_stream {
  explicit ExchangeHandle(std::shared_ptr<http::Exchange> e);
  static http::Exchange& of(sf_stream* self) noexcept {
    return *static_cast<ExchangeHandle*>(self)->exchange;
  }
  const std::shared_ptr<http::Exchange> exchange;
};

const sf_stream_vtbl kExchangeStream = {
    sizeof(sf_stream_vtbl),
    [](sf_stream* self, uint64_t bytes) noexcept { ExchangeHandle::of(self).grant(bytes); },
    [](sf_stream* self, sf_bytes data, uint32_t flags, size_t* accepted,
       const sf_error_sink* err) noexcept {
      return ExchangeHandle::of(self).write(data, flags, accepted, err);
    },
    [](sf_stream* self, const sf_error_sink* err) noexcept {
      return ExchangeHandle::of(self).shutdown_write(err);
    },
    [](sf_stream* self) noexcept { ExchangeHandle::of(self).cancel(); },
    [](sf_stream* self) noexcept {
      ExchangeHandle::of(self).released();
      delete static_cast<ExchangeHandle*>(self);
    },
};

ExchangeHandle::ExchangeHandle(std::shared_ptr<http::Exchange> e) : exchange(std::move(e)) {
  vtbl = &kExchangeStream;
}

std::chrono::milliseconds milliseconds(std::uint64_t ms) {
  constexpr std::uint64_t longest = std::uint64_t{1000} * 3600 * 24 * 365;
  return std::chrono::milliseconds(std::min(ms, longest));
}

Result<std::shared_ptr<const http::Dial>> read_options(const sf_http_client_options* options) {
  if (options == nullptr || !SF_HAS(options, max_connections))
    return Error(Status::invalid, "there are no options of a client, or they lack members");
  auto address = http::parse_base_url(plugin::view(options->base_url));
  if (!address) return std::move(address).error();
  auto dial = std::make_shared<http::Dial>();
  dial->address = std::move(*address);
  if (SF_HAS(options, proxy_url) && options->proxy_url.len > 0) {
    auto proxy = http::parse_proxy_url(plugin::view(options->proxy_url));
    if (!proxy) return std::move(proxy).error();
    if (dial->address.kind == http::Address::Kind::unix_socket)
      return Error(Status::invalid, "a unix socket is not reached by a proxy", "http.proxy_url");
    dial->proxy = std::move(*proxy);
  }
  dial->connect_timeout = milliseconds(options->connect_timeout_ms);
  dial->user_timeout = milliseconds(options->user_timeout_ms);
  dial->keepalive = milliseconds(options->keepalive_ms);
  dial->transport = [](int socket) -> Result<std::unique_ptr<http::Transport>> {
    return http::plain_transport(socket);
  };
  if (dial->address.kind == http::Address::Kind::tls) {
    auto tls = http::Tls::make({std::string(plugin::view(options->ca_pem)),
                                std::string(plugin::view(options->client_cert_pem)),
                                std::string(plugin::view(options->client_key_pem))});
    if (!tls) return std::move(tls).error();
    dial->transport = [tls = std::move(*tls), address = dial->address](int socket) {
      return tls->wrap(socket, address);
    };
  }
  return std::shared_ptr<const http::Dial>(std::move(dial));
}

Result<http::Events> read_events(const sf_stream_events* io, const sf_http_events* http) {
  auto stream = plugin::copy_stream_events(io);
  if (!stream) return std::move(stream).error();
  http::Events out;
  out.io = *stream;
  if (http == nullptr) return out;
  if (SF_HAS(http, ctx)) out.http.ctx = http->ctx;
  if (SF_HAS(http, on_response)) out.http.on_response = http->on_response;
  if (SF_HAS(http, on_end)) out.http.on_end = http->on_end;
  return out;
}

sf_status client_create(sf_host* self, sf_lane* lane, const sf_http_client_options* options,
                        sf_http_client** out, const sf_error_sink* err) noexcept {
  try {
    PluginHost& host = PluginHost::of(self);
    if (lane == nullptr || out == nullptr)
      return plugin::refuse(
          err, Error(Status::invalid, "client_create needs a lane and a place for the client"));
    auto dial = read_options(options);
    if (!dial) return plugin::refuse(err, dial.error());
    auto runtime = host.runtime();
    if (!runtime)
      return plugin::refuse(err, Error(Status::unavailable, "the host has closed this service"));
    const std::uint32_t most =
        options->max_connections == 0 ? kDefaultConnections : options->max_connections;
    auto client =
        std::make_shared<http::Client>(host.plugin(), runtime, plugin::HostLane::lane_of(lane),
                                       std::move(*dial), std::min(most, kMostConnections));
    runtime->track(client);
    *out = reinterpret_cast<sf_http_client*>(new ClientHandle{std::move(client)});
    return SF_OK;
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

void client_release(sf_http_client* raw) noexcept {
  auto client = std::move(ClientHandle::of(raw).client);
  delete &ClientHandle::of(raw);
  const Lane lane = client->lane();
  lane.post([client = std::move(client)] { client->released(); });
}

sf_status request(sf_http_client* raw, const sf_http_request* asked, const sf_stream_events* io,
                  const sf_http_events* events, sf_stream** out,
                  const sf_error_sink* err) noexcept {
  try {
    const auto& client = ClientHandle::of(raw).client;
    if (!client->lane().is_current()) {
      client->plugin().faults.report(plugin::Fault::off_lane, "http.request");
      return plugin::refuse(err, Error(Status::invalid, "request was called outside its lane"));
    }
    if (out == nullptr)
      return plugin::refuse(err, Error(Status::invalid, "request needs a place for its stream"));
    const auto given = read_events(io, events);
    if (!given) return plugin::refuse(err, given.error());
    const auto& dial = client->dial();
    auto request = http::read_request(dial.address, dial.proxy ? &*dial.proxy : nullptr, asked);
    if (!request) return plugin::refuse(err, request.error());
    if (client->ended())
      return plugin::refuse(err, Error(Status::unavailable, "the host has closed this service"));
    if (client->crowded())
      return plugin::refuse(err, Error(Status::rate_limited,
                                       "too many requests wait for a connection", "http.crowded"));
    auto handle = std::make_unique<ExchangeHandle>(
        std::make_shared<http::Exchange>(client, std::move(*request), *given));
    handle->exchange->begin();
    *out = handle.release();
    return SF_OK;
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

}  // namespace

const void* http_service() noexcept {
  static const sf_http_service table = {sizeof(sf_http_service), &client_create, &client_release,
                                        &request};
  return &table;
}

}  // namespace sandforge::services
