#include "sandforge/support/hash.hpp"

#include <algorithm>
#include <cstring>

#include "sandforge/support/encoding.hpp"

namespace sandforge {
namespace {

constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t rotate(std::uint32_t x, unsigned n) noexcept {
  return (x >> n) | (x << (32 - n));
}

std::uint32_t load(const unsigned char* p) noexcept {
  return (std::uint32_t{p[0]} << 24) | (std::uint32_t{p[1]} << 16) | (std::uint32_t{p[2]} << 8) |
         std::uint32_t{p[3]};
}

void store(std::uint32_t x, unsigned char* p) noexcept {
  for (unsigned i = 0; i < 4; ++i)
    p[i] = static_cast<unsigned char>(x >> (24 - 8 * i));
}

}  // namespace

void Sha256::block(const unsigned char* data) noexcept {
  std::uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = load(data + 4 * i);
  for (int i = 16; i < 64; ++i) {
    const std::uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const std::uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    const std::uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const std::uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::uint32_t sums[] = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i)
    state_[i] += sums[i];
}

Sha256& Sha256::update(std::string_view bytes) noexcept {
  total_ += bytes.size();
  while (!bytes.empty()) {
    if (buffered_ == 0 && bytes.size() >= buffer_.size()) {
      block(reinterpret_cast<const unsigned char*>(bytes.data()));
      bytes.remove_prefix(buffer_.size());
      continue;
    }
    const std::size_t n = std::min(buffer_.size() - buffered_, bytes.size());
    std::memcpy(buffer_.data() + buffered_, bytes.data(), n);
    bytes.remove_prefix(n);
    buffered_ += n;
    if (buffered_ == buffer_.size()) {
      block(buffer_.data());
      buffered_ = 0;
    }
  }
  return *this;
}

Sha256Digest Sha256::finish() noexcept {
  const std::uint64_t bits = total_ * 8;
  buffer_[buffered_++] = 0x80;
  if (buffered_ > 56) {
    std::fill(buffer_.begin() + static_cast<std::ptrdiff_t>(buffered_), buffer_.end(), 0);
    block(buffer_.data());
    buffered_ = 0;
  }
  std::fill(buffer_.begin() + static_cast<std::ptrdiff_t>(buffered_), buffer_.end(), 0);
  store(static_cast<std::uint32_t>(bits >> 32), buffer_.data() + 56);
  store(static_cast<std::uint32_t>(bits), buffer_.data() + 60);
  block(buffer_.data());

  Sha256Digest digest;
  for (std::size_t i = 0; i < 8; ++i)
    store(state_[i], digest.data() + 4 * i);
  *this = Sha256();
  return digest;
}

std::string Sha256::finish_hex() {
  const Sha256Digest digest = finish();
  return hex_encode({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

Sha256Digest sha256(std::string_view bytes) noexcept {
  return Sha256().update(bytes).finish();
}

std::string sha256_hex(std::string_view bytes) {
  return Sha256().update(bytes).finish_hex();
}

}  // namespace sandforge
