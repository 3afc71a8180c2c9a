// What is refused before anything starts.
#pragma once

#include <optional>
#include <string_view>

#include "sandforge/sandbox.hpp"

namespace sandforge::sandbox {

// Nothing: all is well. Sizes are the provider's to judge.
std::optional<Error> check_env(const EnvMap& env);
std::optional<Error> check_command(const Command& command);
// Refused are the empty id, `.` and `..`, separators, control characters, invalid UTF-8, more than
// 255 bytes: what follows from an id (names of folders, machines, labels) is the provider's to
// encode, but none of them should have to encode these.
std::optional<Error> check_id(std::string_view id);

}  // namespace sandforge::sandbox
