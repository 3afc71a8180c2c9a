// Identifiers that nobody chose.
#pragma once

#include <string>

namespace sandforge::sandbox {

// 32 hexadecimal digits of the system's randomness.
std::string random_id();

}  // namespace sandforge::sandbox
