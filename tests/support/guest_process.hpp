// The process behind a session of the local provider.
#pragma once

#include <string>

#include "machine.hpp"

namespace sandforge::test {

// The guest that serves the session in this folder; 0: none.
inline pid_t guest_of(const std::string& folder) {
  for (const pid_t pid : conformance::processes_with(folder)) {
    const auto line = conformance::describe({pid});
    if (line.find("sandforge-guest") != std::string::npos &&
        line.find("--root " + folder + " ") != std::string::npos)
      return pid;
  }
  return 0;
}

}  // namespace sandforge::test
