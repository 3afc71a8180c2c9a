// A request as it goes out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "http/address.hpp"
#include "sandforge/error.hpp"
#include "sandforge/ext/host_http.h"

namespace sandforge::http {

struct Request {
  std::string bytes;  // the head, then the body unless it is streamed
  bool to_head = false;
  bool fresh = false;    // on a connection of its own
  bool upgrade = false;  // the stream becomes the connection, where the answer says so
  bool streamed = false;
  bool tunnel = false;        // through the proxy although the address is plain, and not kept
  std::string websocket_key;  // empty: no WebSocket
  std::string subprotocols;   // that it offers
  std::optional<std::uint64_t> length;  // of a streamed body; none: it is chunked
  std::uint64_t head_timeout_ms = 0;
  std::uint64_t idle_timeout_ms = 0;
  std::uint64_t total_timeout_ms = 0;
  std::uint64_t ping_ms = 0;
  std::uint64_t close_timeout_ms = 0;
  std::uint64_t window = 0;
};

// Nothing of it can end the head early, or say a second length. Without a proxy: null.
// Status::invalid. [any]
Result<Request> read_request(const Address& address, const Proxy* proxy,
                             const sf_http_request* request);

}  // namespace sandforge::http
