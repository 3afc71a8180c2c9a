// TLS for the connections of one client.
#pragma once

#include <memory>
#include <string>

#include "http/address.hpp"
#include "http/connection.hpp"
#include "sandforge/error.hpp"

namespace sandforge::http {

struct TlsOptions {
  std::string ca_pem;           // empty: the system's
  std::string client_cert_pem;  // secret; with what signed it; empty: none
  std::string client_key_pem;   // secret
};

// The other end must have a certificate for the address's host, signed by a CA: there is no way to
// do without. TLS 1.2 and later.
class Tls {
 public:
  virtual ~Tls() = default;
  // Status::invalid when a text is not what it should be; tells nothing of what it holds. [any]
  static Result<std::shared_ptr<Tls>> make(const TlsOptions& options);
  // The first one loads the system's CAs. On the client's lane.
  virtual Result<std::unique_ptr<Transport>> wrap(int socket, const Address& address) = 0;
};

}  // namespace sandforge::http
