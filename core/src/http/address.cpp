#include "http/address.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <sys/un.h>

#include "sandforge/support/encoding.hpp"

namespace sandforge::http {
namespace {

Error bad_url(const char* why) {
  return Error(Status::invalid, std::string("the base URL of a client ") + why, "http.base_url");
}

Error bad_proxy(const char* why) {
  return Error(Status::invalid, std::string("the URL of a proxy ") + why, "http.proxy_url");
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

Result<Address> parse_unix(std::string_view path) {
  if (path.size() < 2 || path.front() != '/' || path.find('\0') != std::string_view::npos)
    return bad_url("needs the absolute path of a socket: unix:///PATH");
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    return bad_url("has a path that is longer than sockets can have");
  Address out;
  out.kind = Address::Kind::unix_socket;
  out.host = path;
  out.authority = "localhost";
  return out;
}

// HOST, HOST:PORT, [IPV6] or [IPV6]:PORT.
Result<void> parse_authority(std::string_view text, Address& out) {
  const bool good = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < '\x7f' &&
           std::string_view("\"<>\\^`{|}@%").find(c) == std::string_view::npos;
  });
  if (!good) return bad_url("has a host that is empty, or has characters that no host has");
  out.authority = text;
  std::string_view port;
  if (text.front() == '[') {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return bad_url("has a '[' without its ']'");
    out.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && port.front() != ':')
      return bad_url("has something else than a port behind its ']'");
  } else {
    const auto colon = text.find(':');
    out.host = text.substr(0, colon);
    port = colon == std::string_view::npos ? std::string_view() : text.substr(colon);
  }
  if (out.host.empty()) return bad_url("has no host");
  if (port.empty()) return {};
  port.remove_prefix(1);
  const auto [end, wrong] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (wrong != std::errc() || end != port.data() + port.size() || out.port == 0)
    return bad_url("has a port that is no number from 1 to 65535");
  return {};
}

}  // namespace

std::string Address::name() const {
  if (kind == Kind::unix_socket) return host;
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Address> parse_base_url(std::string_view url) {
  if (take_prefix(url, "unix://")) return parse_unix(url);
  Address out;
  if (take_prefix(url, "https://")) {
    out.kind = Address::Kind::tls;
    out.port = 443;
  } else if (take_prefix(url, "http://")) {
    out.port = 80;
  } else {
    return bad_url("begins with none of http://, https:// and unix://");
  }
  const auto slash = std::min(url.find_first_of("/?#"), url.size());
  if (url.substr(0, slash).find('@') != std::string_view::npos)
    return bad_url("must not hold a user or a password");
  if (auto good = parse_authority(url.substr(0, slash), out); !good) return std::move(good).error();
  std::string_view path = url.substr(slash);
  const bool good = std::all_of(path.begin(), path.end(), [](char c) {
    return c > ' ' && c < '\x7f' && c != '?' && c != '#';
  });
  if (!good) return bad_url("must end with its path, percent-encoded, without '?' and '#'");
  while (!path.empty() && path.back() == '/')
    path.remove_suffix(1);
  out.prefix = path;
  return out;
}

Result<Proxy> parse_proxy_url(std::string_view url) {
  if (!take_prefix(url, "http://")) return bad_proxy("begins with something else than http://");
  if (!url.empty() && url.back() == '/') url.remove_suffix(1);
  Proxy out;
  if (const auto at = url.rfind('@'); at != std::string_view::npos) {
    const auto user = url.substr(0, at);
    const auto colon = std::min(user.find(':'), user.size());
    const auto name = percent_decode(user.substr(0, colon));
    const auto password = percent_decode(user.substr(std::min(colon + 1, user.size())));
    if (!name || !password || name->find(':') != std::string::npos)
      return bad_proxy("has a user or a password that is not percent-encoded");
    out.authorization = "Basic " + base64_encode(*name + ':' + *password);
    url.remove_prefix(at + 1);
  }
  out.address.port = 80;
  if (url.find_first_of("/?#") != std::string_view::npos || !parse_authority(url, out.address))
    return bad_proxy("is no http://[USER:PASSWORD@]HOST[:PORT]");
  return out;
}

}  // namespace sandforge::http
