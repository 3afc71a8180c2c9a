// The ways in which a secret shows up in text. Not installed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sandforge::redaction {

// Blanks and newlines at both ends cut off: a file ends in a newline, its use does not.
std::string_view trimmed(std::string_view secret);

// The secret itself and all its disguises, each once. `secret` is trimmed.
std::vector<std::string> disguises(std::string_view secret);

}  // namespace sandforge::redaction
