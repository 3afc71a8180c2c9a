// Where a plugin in a process of its own may send requests.
#pragma once

#include <string>
#include <vector>

#include "sandforge/error.hpp"
#include "sandforge/ext/host_http.h"

namespace sandforge::services {

struct HttpGrants {
  std::vector<std::string> hosts;  // as in PluginPolicy
  std::vector<std::string> unix_sockets;
};

// Both the base and the proxy of a client must be granted. unsupported: one is not, and the message
// names the member of the configuration. invalid: there is no such address. [any]
Result<void> check_grants(const HttpGrants& grants, const std::string& plugin,
                          const sf_http_client_options* options);

}  // namespace sandforge::services
