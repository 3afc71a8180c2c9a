// What the objects of a plugin must have: every function of version 1.0.
#pragma once

#include "sandforge/abi.h"

namespace sandforge::plugin {

// The first member that is missing; null: all are there.
const char* missing_member(const sf_provider* provider) noexcept;
const char* missing_member(const sf_sandbox* sandbox) noexcept;
const char* missing_member(const sf_process* process) noexcept;
const char* missing_member(const sf_stream* stream) noexcept;

}  // namespace sandforge::plugin
