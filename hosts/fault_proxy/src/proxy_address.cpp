#include "proxy_address.hpp"

#include <arpa/inet.h>
#include <sys/un.h>

#include <charconv>
#include <optional>

namespace sandforge::proxy {
namespace {

// Whether it is an IP address, and if so whether it is loopback.
std::optional<bool> loopback(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24U) == 127;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return std::nullopt;
}

Error bad(const std::string& text, const std::string& why) {
  return Error(Status::invalid, "'" + text + "' is no address: " + why, "proxy.address");
}

}  // namespace

Result<ProxyAddress> parse_proxy_address(const std::string& text, bool remote) {
  ProxyAddress out;
  if (text.rfind("unix:", 0) == 0) {
    out.path = text.substr(5);
    if (out.path.empty() || out.path.find('\0') != std::string::npos)
      return bad(text, "a path must follow unix:");
    if (out.path.size() >= sizeof sockaddr_un::sun_path)
      return bad(text, "the path of a socket has at most 107 bytes");
    return out;
  }
  const auto colon = text.rfind(':');
  if (text.rfind("tcp:", 0) != 0 || colon < 4)
    return bad(text, "tcp:IP:PORT or unix:PATH is expected");
  out.host = text.substr(4, colon - 4);
  if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']')
    out.host = out.host.substr(1, out.host.size() - 2);
  const auto* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + colon + 1, end, out.port);
  if (error != std::errc() || last != end) return bad(text, "a port is from 0 to 65535");
  const auto near = loopback(out.host);
  if (!near) return bad(text, "'" + out.host + "' is no IP address");
  if (!*near && !remote)
    return Error(Status::forbidden,
                 "'" + text + "' is not an address of this machine alone; --remote allows it",
                 "proxy.remote");
  return out;
}

std::string to_string(const ProxyAddress& address) {
  if (address.is_unix()) return "unix:" + address.path;
  const bool v6 = address.host.find(':') != std::string::npos;
  return "tcp:" + (v6 ? '[' + address.host + ']' : address.host) + ':' +
         std::to_string(address.port);
}

}  // namespace sandforge::proxy
