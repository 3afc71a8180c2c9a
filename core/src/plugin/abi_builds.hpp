// The template and builds extensions of a plugin's provider.
#pragma once

#include <memory>

#include "plugin/abi_backend.hpp"
#include "sandforge/builds.hpp"

namespace sandforge::plugin {

// Null where the provider has no such extension. [lane]
const void* provider_extension(ProviderCore& core, const char* id);

std::unique_ptr<BuildsBackend> make_builds(std::shared_ptr<ProviderCore> core);

}  // namespace sandforge::plugin
