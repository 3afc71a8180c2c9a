// The snapshot extension: checkpoints of the session, made and read on pool threads.
#pragma once

#include <memory>

#include "checkpoints.hpp"
#include "sandforge/abi.h"

namespace sandforge::local {

const void* snapshot_extension();

// The handle of an operation whose work looks at the flag.
sf_op* flag_op(std::shared_ptr<CancelFlag> flag);

}  // namespace sandforge::local
