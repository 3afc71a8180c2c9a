// Where an engine is: DOCKER_HOST and its neighbours.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sandforge::wire::docker {

struct Endpoint {
  std::string base_url;  // for an HTTP client: unix:///path, http://… or https://…
  std::string shown;     // for messages, as it is written in DOCKER_HOST, without a login
  std::string path;      // of a unix socket
  bool tls = false;
};

struct EndpointResult {
  std::optional<Endpoint> endpoint;
  std::string error;  // where there is none; it names no user and no password
};

// unix://PATH, tcp://HOST[:PORT], http(s)://HOST[:PORT] or HOST:PORT. Empty: the usual socket. TLS
// is on with https, by verify (DOCKER_TLS_VERIFY), and on port 2376.
EndpointResult parse_endpoint(std::string_view host, bool verify);

// A version of the API, such as 1.41.
struct ApiVersion {
  int major = 0;
  int minor = 0;
  std::string text() const;
  friend bool operator<(const ApiVersion& a, const ApiVersion& b) noexcept {
    return a.major != b.major ? a.major < b.major : a.minor < b.minor;
  }
};
std::optional<ApiVersion> parse_api_version(std::string_view text);

}  // namespace sandforge::wire::docker
