// Pseudo terminals.
#pragma once

#include <cstdint>

#include "sandforge/posix/fd.hpp"

namespace sandforge::posix {

struct Pty {
  Fd master;  // non-blocking
  Fd slave;   // for the child; close it in the parent once the child runs
};

// False with errno set.
bool open_pty(std::uint16_t cols, std::uint16_t rows, Pty& out) noexcept;
bool resize_pty(int master, std::uint16_t cols, std::uint16_t rows) noexcept;

}  // namespace sandforge::posix
