// The files extension of a plugin's sandbox.
#pragma once

#include <memory>

#include "plugin/abi_backend.hpp"
#include "sandforge/ext/files.h"
#include "sandforge/files.hpp"

namespace sandforge::plugin {

// The first function that the table lacks; null: all that a table must have are there.
const char* missing_member(const sf_files_ext* table) noexcept;

std::unique_ptr<FilesBackend> make_files(std::shared_ptr<SandboxCore> core);

}  // namespace sandforge::plugin
