// The role that owns processes.
#pragma once

#include "options.hpp"

namespace sandforge::guest {

// Until it is told to end, or its idle rule says so. Answers the exit code of the program: 0, or
// 1 for a failed set-up, or 3 when another guest serves the same socket.
int serve(const ServeOptions& options);

}  // namespace sandforge::guest
