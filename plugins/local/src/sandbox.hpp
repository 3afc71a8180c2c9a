// One session of the local provider.
#pragma once

#include <memory>
#include <string>

#include "checkpoints.hpp"
#include "environment.hpp"
#include "guest_start.hpp"
#include "sandforge/abi.h"
#include "sandforge/guest_link/guest_link.hpp"

namespace sandforge::local {

// What the provider's options and the host give to every session.
struct ProviderSettings {
  sf_host* host = nullptr;
  const sf_executor_service* executor = nullptr;
  std::string root;
  std::string guest_program;
  std::uint64_t guest_silence_ms = 10'000;  // option `guestSilenceMs`
  std::optional<Environment> env;           // option `env`
};

// The object behind an sf_sandbox. All of it on its lane; a pool thread only sees copies.
sf_sandbox* make_sandbox(std::shared_ptr<const ProviderSettings> settings, SessionPlace place,
                         BootNames boot, sf_lane* lane);

}  // namespace sandforge::local
