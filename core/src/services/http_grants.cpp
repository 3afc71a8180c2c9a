#include "services/http_grants.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "http/address.hpp"
#include "http/text.hpp"
#include "plugin/abi_text.hpp"

namespace sandforge::services {
namespace {

Error not_granted(const std::string& plugin, const std::string& where, const char* member,
                  const char* reason) {
  return Error(Status::unsupported,
               fmt::format("the plugin {} may not connect to {}: the configuration does not grant "
                           "it; what grants it is plugins: {{policies: {{{}: {{allow: {{{}: "
                           "[\"{}\"]}}}}}}}}",
                           plugin, where, plugin, member, where),
               reason);
}

// "*.example.com" is for what is below it, not for itself.
bool is_host(std::string_view granted, std::string_view host) {
  if (granted == "*") return true;
  if (granted.substr(0, 2) != "*.") return http::same_name(granted, host);
  granted.remove_prefix(1);
  return host.size() > granted.size() &&
         http::same_name(host.substr(host.size() - granted.size()), granted);
}

bool is_granted(std::string_view granted, const http::Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  const std::string host = v6 ? '[' + address.host + ']' : address.host;
  const auto colon = granted.rfind(':');
  const bool port = colon != std::string_view::npos && granted.find(']', colon) == granted.npos;
  if (port && granted.substr(colon + 1) != std::to_string(address.port)) return false;
  return is_host(granted.substr(0, port ? colon : granted.size()), host);
}

Result<void> check(const HttpGrants& grants, const std::string& plugin,
                   const http::Address& address) {
  if (address.kind == http::Address::Kind::unix_socket) {
    // As it is written: with links in it, another spelling may be another place for the kernel.
    const auto& paths = grants.unix_sockets;
    if (std::find(paths.begin(), paths.end(), address.host) != paths.end()) return {};
    return not_granted(plugin, address.name(), "unixSockets", "grant.unix_sockets");
  }
  const bool good =
      std::any_of(grants.hosts.begin(), grants.hosts.end(),
                  [&](const std::string& granted) { return is_granted(granted, address); });
  if (good) return {};
  return not_granted(plugin, address.name(), "hosts", "grant.hosts");
}

}  // namespace

Result<void> check_grants(const HttpGrants& grants, const std::string& plugin,
                          const sf_http_client_options* options) {
  if (options == nullptr || !SF_HAS(options, base_url))
    return Error(Status::invalid, "there are no options of a client, or they lack members");
  const auto base = http::parse_base_url(plugin::view(options->base_url));
  if (!base) return base.error();
  if (SF_HAS(options, proxy_url) && options->proxy_url.len > 0) {
    const auto proxy = http::parse_proxy_url(plugin::view(options->proxy_url));
    if (!proxy) return proxy.error();
    if (auto good = check(grants, plugin, proxy->address); !good) return good;
  }
  return check(grants, plugin, *base);
}

}  // namespace sandforge::services
