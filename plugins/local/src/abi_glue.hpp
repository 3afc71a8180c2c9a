// Between this plugin's C++ and the C boundary, as all plugins with a guest have it.
#pragma once

#include "sandforge/guest_link/abi_glue.hpp"

namespace sandforge::local {

using namespace guest_link;

}  // namespace sandforge::local
