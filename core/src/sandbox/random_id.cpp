#include "sandbox/random_id.hpp"

#include <fmt/format.h>

#include <random>

namespace sandforge::sandbox {

std::string random_id() {
  std::random_device device;
  std::string out;
  for (int i = 0; i < 4; ++i)
    out += fmt::format("{:08x}", static_cast<unsigned>(device()));
  return out;
}

}  // namespace sandforge::sandbox
