#include "base/random.hpp"

#include <cerrno>
#include <stdexcept>

#include <sys/random.h>

#include "sandforge/support/encoding.hpp"

namespace sandforge {

std::string random_hex(std::size_t bytes) {
  std::string buffer(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    const auto got = ::getrandom(buffer.data() + have, bytes - have, 0);
    if (got < 0 && errno != EINTR) throw std::runtime_error("getrandom failed");
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return hex_encode(buffer);
}

}  // namespace sandforge
