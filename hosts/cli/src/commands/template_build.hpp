// Templates that a person wrote, in a file.
#pragma once

#include <string>

#include "app.hpp"

namespace sandforge::cli {

// Its canonical text. Throws the Error: not_found, or what is wrong with it.
std::string read_template(const std::string& file);

// Builds it where it is not ready, with the log on standard error; an interrupt cancels it. Throws
// the Error of a build that failed, and unsupported where the provider cannot build it.
void build_ahead(App& app, const std::string& provider, const std::string& document);

}  // namespace sandforge::cli
