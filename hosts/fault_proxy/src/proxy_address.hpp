// "tcp:127.0.0.1:8080", "tcp:[::1]:8080" or "unix:/path": numbers only, no names are looked up.
#pragma once

#include <cstdint>
#include <string>

#include "sandforge/error.hpp"

namespace sandforge::proxy {

struct ProxyAddress {
  std::string host;  // an IP address; empty: a unix socket
  std::uint16_t port = 0;
  std::string path;  // of the unix socket

  bool is_unix() const noexcept { return host.empty(); }
};

// invalid when it is none; forbidden when it leaves this machine and `remote` is false.
Result<ProxyAddress> parse_proxy_address(const std::string& text, bool remote);
std::string to_string(const ProxyAddress& address);

}  // namespace sandforge::proxy
