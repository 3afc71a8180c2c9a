// Numbers on the wire: little-endian, whatever the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sandforge::wire::runner {

template <class T>
void store(char* out, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out[i] = static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xFF);
}

// Of fewer bytes than T has: the missing ones are zero.
template <class T>
T fetch(std::string_view in) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = in.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(in[i]);
  return static_cast<T>(value);
}
template <class T>
T fetch(const char* in) noexcept {
  return fetch<T>(std::string_view(in, sizeof(T)));
}

}  // namespace sandforge::wire::runner
