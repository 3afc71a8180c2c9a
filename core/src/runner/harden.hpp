// In the runner: what a plugin's process gives up before the plugin's code runs.
#pragma once

#include <string>

#include "runner/greeting.hpp"

namespace sandforge::runner {

// Before any other thread exists. Limits of memory and descriptors, no core files, no dumps and no
// ptrace by others, no new privileges. Without a grant for commands also, where the kernel has
// Landlock: no program is executed, and files are written below the plugin's own folders only.
// Gives what could not be had, in words; empty: all of it.
std::string harden(const Hello& hello);

}  // namespace sandforge::runner
