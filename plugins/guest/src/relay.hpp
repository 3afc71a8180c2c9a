// The role that bridges standard input and output to the socket of a guest.
#pragma once

#include "options.hpp"

namespace sandforge::guest {

// Until either side ends. Answers the exit code: 0, or 1 when there was nobody to connect to, or
// 4 when the reader of our output made no progress within the deadline.
int relay(const RelayOptions& options);

}  // namespace sandforge::guest
