// The directory extension of a plugin's provider.
#pragma once

#include <memory>

#include "plugin/abi_backend.hpp"
#include "sandforge/directory.hpp"

namespace sandforge::plugin {

std::unique_ptr<DirectoryBackend> make_directory(std::shared_ptr<ProviderCore> core);

}  // namespace sandforge::plugin
