// SHA-256 (FIPS 180-4), without a dependency. For content addresses and fingerprints; it is not
// constant-time and no place to compare secrets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sandforge {

using Sha256Digest = std::array<std::uint8_t, 32>;

// Hashes a stream in pieces of any size. One object belongs to one stream; not thread-safe.
class Sha256 {
 public:
  Sha256& update(std::string_view bytes) noexcept;
  // The digest of everything so far; the object starts anew.
  Sha256Digest finish() noexcept;
  std::string finish_hex();

 private:
  void block(const unsigned char* data) noexcept;

  static constexpr std::array<std::uint32_t, 8> kStart = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                                          0xa54ff53a, 0x510e527f, 0x9b05688c,
                                                          0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint32_t, 8> state_ = kStart;
  std::array<unsigned char, 64> buffer_{};
  std::size_t buffered_ = 0;
  std::uint64_t total_ = 0;
};

Sha256Digest sha256(std::string_view bytes) noexcept;
// 64 lower-case digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace sandforge
