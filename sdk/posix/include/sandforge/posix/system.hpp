// Newer system calls with their fallbacks. Sandboxes answer a call that they filter with EPERM as
// often as with ENOSYS: both mean that it is absent.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <string>

#include "sandforge/posix/fd.hpp"

namespace sandforge::posix {

bool call_is_absent(int error_number) noexcept;

// Closes every descriptor from `first` on. Async-signal-safe.
void close_from(int first) noexcept;

// Nothing when the call is absent or the process is gone.
Fd open_pidfd(pid_t pid) noexcept;
// As kill(2), through a pidfd.
bool signal_pidfd(int pidfd, int signal) noexcept;

// Milliseconds of the monotonic clock, and nanoseconds.
std::int64_t monotonic_ms() noexcept;
std::int64_t monotonic_ns() noexcept;
std::int64_t unix_ms() noexcept;

// Random bytes from the kernel; never fails (falls back to /dev/urandom, then to the clock).
void random_bytes(void* out, std::size_t size) noexcept;
// The same as two lower-case hexadecimal digits each: for names and keys that nobody chose.
std::string random_hex(std::size_t bytes);

}  // namespace sandforge::posix
