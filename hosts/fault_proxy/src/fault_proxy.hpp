// The proxy: accepts connections, forwards them, and breaks them by its plan.
#pragma once

#include <cstddef>
#include <memory>

#include "proxy_address.hpp"
#include "proxy_plan.hpp"

namespace sandforge::proxy {

// Thread rule: every function from any thread, but for open and the destructor.
class FaultProxy {
 public:
  struct Options {
    Options() = default;
    ProxyAddress listen;  // port 0: one that is free; a path must not exist yet
    ProxyAddress to;
    ProxyPlan plan;
    std::size_t max_connections = 1024;  // at once; more wait to be accepted
  };

  // Serves from now on, on a thread of its own. unavailable: the address cannot be had.
  static Result<std::unique_ptr<FaultProxy>> open(Options options);
  // Resets what is open, frees the address, and waits for the thread.
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  ProxyAddress address() const;  // as it was bound
  std::uint64_t connections() const;
  // How often a rule has struck: a test that never met its fault has shown nothing.
  std::uint64_t struck(std::size_t rule) const;

 private:
  struct Impl;
  explicit FaultProxy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sandforge::proxy
