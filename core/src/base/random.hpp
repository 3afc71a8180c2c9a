// Names and keys that nobody chose.
#pragma once

#include <cstddef>
#include <string>

namespace sandforge {

// Two lower-case hexadecimal digits for each byte of the kernel's randomness. Throws
// std::runtime_error where there is none. [any]
std::string random_hex(std::size_t bytes);

}  // namespace sandforge
