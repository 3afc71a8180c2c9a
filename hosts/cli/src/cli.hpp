// The program, as a function.
#pragma once

#include <string>
#include <vector>

#include "sandforge/registry.hpp"

namespace sandforge::cli {

// Words without the program's name; the answer is the exit code. `providers` are registered in code
// before the plugins are looked for. Not more than one call at a time.
int cli_main(const std::vector<std::string>& words, std::vector<ProviderDefinition> providers = {});

}  // namespace sandforge::cli
