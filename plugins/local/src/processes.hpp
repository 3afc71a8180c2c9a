// The processes extension: what runs in a session, also when another host started it.
#pragma once

#include "sandforge/ext/processes.h"

namespace sandforge::local {

const sf_processes_ext* processes_extension() noexcept;

}  // namespace sandforge::local
