// What the proxy does to which connection. Source: schemas/fault-proxy.schema.json.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sandforge/error.hpp"

namespace sandforge::proxy {

enum class ProxyFault : std::uint8_t { delay, cut, black_hole, refuse, answer };
enum class Direction : std::uint8_t { up, down, both };  // up: from client to server

struct ProxyRule {
  ProxyRule() = default;
  explicit ProxyRule(ProxyFault f) : fault(f) {}

  ProxyFault fault = ProxyFault::cut;
  std::optional<std::uint64_t> nth;    // at most one of these; none: each connection
  std::optional<std::uint64_t> every;  // counted from 1
  Direction direction = Direction::down;
  std::uint64_t after = 0;  // bytes of the direction that come through first
  std::string pattern;      // else it strikes here; empty: none
  std::chrono::milliseconds delay{0};
  int status = 502;
  std::optional<int> retry_after;  // seconds
};

struct ProxyPlan {
  std::vector<ProxyRule> rules;
};

// {"rules": […]}; invalid, reason "proxy.rules": every mistake is in the details, "issues".
Result<ProxyPlan> read_proxy_plan(const json::Value& document);
// The same from YAML or JSON text; `name` is for messages.
Result<ProxyPlan> parse_proxy_plan(const std::string& name, const std::string& text);

extern const char* const proxy_schema;

}  // namespace sandforge::proxy
