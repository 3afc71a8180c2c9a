// Templates that new sessions boot.
#pragma once

#include <optional>
#include <string>

#include "app.hpp"
#include "arguments.hpp"

namespace sandforge::cli {

// The canonical text of one that a person wrote, in a file. Throws the Error: not_found, or what is
// wrong with it.
std::string read_template(const std::string& file);

// Builds it where it is not ready, with the log on standard error; an interrupt cancels it. Throws
// the Error of a build that failed, and unsupported where the provider cannot build it.
void build_ahead(App& app, const std::string& provider, const std::string& document);

// The template of the repositories of a new session, where it was built already. Absent: none was,
// or there is no telling; nothing is built, because a build that this program left behind would end
// with it.
std::optional<std::string> built_template(App& app, const std::string& provider,
                                          const SessionArguments& arguments);

}  // namespace sandforge::cli
