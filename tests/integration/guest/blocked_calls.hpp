// A filter that answers the system calls of newer kernels as profiles of containers do.
#pragma once

#include <vector>

namespace guest_test {

struct BlockedCalls {
  int error_number = 0;       // what they answer: ENOSYS or EPERM
  bool no_subreaper = false;  // prctl(PR_SET_CHILD_SUBREAPER) too
};

// For the calling process and all that it starts; between fork and exec. False where filters cannot
// be installed.
bool install_filter(const BlockedCalls& blocked);

}  // namespace guest_test
