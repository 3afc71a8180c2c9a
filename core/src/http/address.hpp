// Where a client sends its requests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sandforge/error.hpp"

namespace sandforge::http {

struct Address {
  enum class Kind : std::uint8_t { tcp, tls, unix_socket };
  Kind kind = Kind::tcp;
  std::string host;  // a name or a number, without brackets; the path of a unix socket
  std::uint16_t port = 0;
  std::string prefix;     // of every target; empty, or "/…" without a slash at its end
  std::string authority;  // the Host of requests

  // "HOST:PORT" or the path, for messages.
  std::string name() const;
};

// http://HOST[:PORT][/PREFIX], https://…, unix:///PATH. Status::invalid for all else. [any]
Result<Address> parse_base_url(std::string_view url);

// An HTTP proxy between the client and its address.
struct Proxy {
  Address address;
  std::string authorization;  // secret: what Proxy-Authorization has; empty: none
};

// http://[USER[:PASSWORD]@]HOST[:PORT], user and password percent-encoded. Status::invalid for all
// else, which tells nothing of the text. [any]
Result<Proxy> parse_proxy_url(std::string_view url);

}  // namespace sandforge::http
