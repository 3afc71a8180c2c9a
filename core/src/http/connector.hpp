// From an address to a connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "http/address.hpp"
#include "http/connection.hpp"
#include "sandforge/error.hpp"
#include "sandforge/runtime.hpp"

namespace sandforge::http {

// How all connections of a client are made.
struct Dial {
  Address address;
  std::optional<Proxy> proxy;
  std::chrono::milliseconds connect_timeout{0};  // 0: none
  std::chrono::milliseconds user_timeout{0};     // 0: the system's
  std::chrono::milliseconds keepalive{0};        // 0: off
  // The socket as `address` needs it; throws nothing.
  std::function<Result<std::unique_ptr<Transport>>(int socket)> transport;
};

// One try. Thread rule: on its lane.
class Connector {
 public:
  using Done = std::function<void(Result<std::shared_ptr<Connection>>)>;

  virtual ~Connector() = default;
  // Ends it without a call of `done`.
  virtual void cancel() noexcept = 0;

  // `done` comes later, on the lane, unless it was cancelled. Tries the addresses of a name one
  // after the other. `tunnel`: through a proxy by CONNECT although the address is plain.
  static std::shared_ptr<Connector> start(const Lane& lane, std::shared_ptr<const Dial> dial,
                                          bool tunnel, Done done);
};

}  // namespace sandforge::http
