// Where named secrets come from: behind the `secrets` service of plugins.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sandforge/context.hpp"
#include "sandforge/handler.hpp"

namespace sandforge {

// Thread rule: [any]; the handler may be called from any thread, once.
class SecretSource {
 public:
  virtual ~SecretSource() = default;
  // The value as the configuration grants it to this plugin; none: there is no such secret, or the
  // plugin may not see it. `scope` is null for values of the provider itself.
  virtual void get(const std::string& plugin, std::shared_ptr<const SessionContext> scope,
                   std::string name, Handler<std::optional<std::string>> done) = 0;
};

}  // namespace sandforge
