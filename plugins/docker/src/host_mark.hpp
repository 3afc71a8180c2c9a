// What tells the containers of this host from those of others that share its engine.
#pragma once

#include <sandforge/plugin/coroutine.hpp>

#include <mutex>
#include <string>
#include <string_view>

namespace sandforge::docker {

// Label of a container: the host that made it.
inline constexpr std::string_view kHostLabel = "sandforge.host";

// Hexadecimal, of a name that nobody else makes up.
std::string random_digits(std::size_t count);

// Shared by all sandboxes of a provider. Threads: any; each call on the lane that it is given.
class HostMark {
 public:
  // Made up once, and kept by the state service: one for all processes of a host that share their
  // sessions. Empty: this host keeps nothing, so that nobody will know its containers again.
  plugin::Task<std::string> read(plugin::Lane lane);

 private:
  std::mutex mutex_;
  std::string known_;
};

}  // namespace sandforge::docker
