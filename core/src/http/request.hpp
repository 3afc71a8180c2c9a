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
  std::optional<std::uint64_t> length;  // of a streamed body; none: it is chunked
  std::uint64_t head_timeout_ms = 0;
  std::uint64_t idle_timeout_ms = 0;
  std::uint64_t window = 0;
};

// Nothing of it can end the head early, or say a second length. Status::invalid. [any]
Result<Request> read_request(const Address& address, const sf_http_request* request);

}  // namespace sandforge::http
