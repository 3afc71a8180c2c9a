// The environment that commands of the local provider get.
// Source: LocalFactorySandbox of the FactorySandbox document.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sandforge/ext/host_env.h"

namespace sandforge::local {

using Environment = std::map<std::string, std::string>;

// The host's variables by the env service, which lets through what the manifest names.
class HostEnvironment {
 public:
  explicit HostEnvironment(sf_host* host) noexcept;
  std::optional<std::string> get(std::string_view name) const;

 private:
  sf_host* host_;
  const sf_env_service* service_;
};

// PATH and the variables that git and TLS need; the rest of the host's environment stays out.
Environment default_environment(const HostEnvironment& host);
// PATH alone: what stays when an environment is given.
Environment path_only(const HostEnvironment& host);

struct Root {
  std::string path;
  std::string from;  // what said so: "option root", or the name of a variable
};
// Option, else MASTRACODE_LOCAL_SANDBOX_ROOT, else SANDFORGE_LOCAL_ROOT, else
// ~/.mastracode/web/sandboxes. Blank counts as unset. Empty: nothing of this is there, not even
// HOME.
Root choose_root(const std::optional<std::string>& option, const HostEnvironment& host);

}  // namespace sandforge::local
