#include "sandforge/wire/docker/endpoint.hpp"

#include <charconv>

namespace sandforge::wire::docker {
namespace {

constexpr std::string_view kUsualSocket = "/var/run/docker.sock";
constexpr std::string_view kPlainPort = "2375";
constexpr std::string_view kTlsPort = "2376";

bool starts_with(std::string_view text, std::string_view with) noexcept {
  return text.substr(0, with.size()) == with;
}

// For messages: a password that was written in front of the host is nobody's to see.
std::string without_login(std::string_view host) {
  const auto scheme = host.find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  const auto at = host.rfind('@');
  std::string out(host);
  if (at != std::string_view::npos && at >= begin) out.erase(begin, at + 1 - begin);
  return out;
}

EndpointResult refused(std::string why) {
  return {std::nullopt, std::move(why)};
}

EndpointResult over_tcp(std::string_view address, std::string shown, bool tls) {
  while (!address.empty() && address.back() == '/')
    address.remove_suffix(1);
  if (address.find_first_of("/@?# ") != std::string_view::npos)
    return refused("the address of the engine is HOST:PORT and nothing else: " + shown);
  const auto bracket = address.rfind(']');
  const auto colon = address.find(':', bracket == std::string_view::npos ? 0 : bracket);
  std::string_view port;
  if (colon != std::string_view::npos) port = address.substr(colon + 1);
  if (address.substr(0, colon).empty())
    return refused("the address of the engine names no host: " + shown);
  tls = tls || port == kTlsPort;
  Endpoint out;
  out.tls = tls;
  out.base_url = (tls ? "https://" : "http://") + std::string(address);
  if (port.empty()) {
    if (colon == std::string_view::npos) out.base_url += ':';
    out.base_url += tls ? kTlsPort : kPlainPort;
  }
  out.shown = std::move(shown);
  return {std::move(out), {}};
}

bool read_number(std::string_view text, int& into) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size() && into >= 0 && into < 10'000;
}

}  // namespace

EndpointResult parse_endpoint(std::string_view host, bool verify) {
  std::string shown = without_login(host);
  if (host.empty() || starts_with(host, "unix://")) {
    std::string_view path = host.substr(host.empty() ? 0 : 7);
    if (path.empty()) path = kUsualSocket;
    if (path.front() != '/') return refused("the path of a socket begins with '/': " + shown);
    Endpoint out;
    out.path = path;
    out.base_url = "unix://" + out.path;
    out.shown = out.base_url;
    return {std::move(out), {}};
  }
  if (starts_with(host, "tcp://")) return over_tcp(host.substr(6), std::move(shown), verify);
  if (starts_with(host, "http://")) return over_tcp(host.substr(7), std::move(shown), verify);
  if (starts_with(host, "https://")) return over_tcp(host.substr(8), std::move(shown), true);
  if (host.find("://") != std::string_view::npos)
    return refused("engines are reached by unix://, tcp://, http:// and https://, not by " + shown);
  return over_tcp(host, "tcp://" + shown, verify);
}

std::string ApiVersion::text() const {
  return std::to_string(major) + '.' + std::to_string(minor);
}

std::optional<ApiVersion> parse_api_version(std::string_view text) {
  if (!text.empty() && text.front() == 'v') text.remove_prefix(1);
  const auto dot = text.find('.');
  ApiVersion out;
  if (dot == std::string_view::npos || !read_number(text.substr(0, dot), out.major) ||
      !read_number(text.substr(dot + 1), out.minor))
    return std::nullopt;
  return out;
}

}  // namespace sandforge::wire::docker
