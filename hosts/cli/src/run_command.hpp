// One command of a sandbox, connected with this program's descriptors.
#pragma once

#include <memory>

#include "commands.hpp"
#include "sandforge/sandbox.hpp"

namespace sandforge::cli {

// Streams output as it comes, or with json prints the result as a whole. The exit code of the
// program.
int run_command(Sandbox& sandbox, const CommandOptions& options, bool json);

}  // namespace sandforge::cli
