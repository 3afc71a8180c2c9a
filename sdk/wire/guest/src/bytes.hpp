// Little-endian fields of message payloads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace sandforge::wire::guest {

template <class T>
void store(char* out, T value) noexcept {
  auto bits = static_cast<std::make_unsigned_t<T>>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out[i] = static_cast<char>(static_cast<unsigned char>(bits & 0xff));
    if constexpr (sizeof(T) > 1) bits = static_cast<std::make_unsigned_t<T>>(bits >> 8);
  }
}

template <class T>
T fetch(const char* in) noexcept {
  std::make_unsigned_t<T> bits = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) {
    if constexpr (sizeof(T) > 1) bits = static_cast<std::make_unsigned_t<T>>(bits << 8);
    bits = static_cast<std::make_unsigned_t<T>>(bits | static_cast<unsigned char>(in[i]));
  }
  return static_cast<T>(bits);
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class T>
  Writer& number(T value) {
    char bytes[sizeof(T)];
    store(bytes, value);
    out_.append(bytes, sizeof(T));
    return *this;
  }
  Writer& flag(bool value) { return number<std::uint8_t>(value ? 1 : 0); }
  Writer& text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    out_.append(value);
    return *this;
  }

 private:
  std::string& out_;
};

// Once something did not fit, every further read fails and `done` answers false.
class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}

  template <class T>
  Reader& number(T& value) {
    if (!take(sizeof(T))) return *this;
    value = fetch<T>(taken_);
    return *this;
  }
  Reader& flag(bool& value) {
    std::uint8_t byte = 0;
    number(byte);
    if (byte > 1) fail();
    value = byte == 1;
    return *this;
  }
  // Enumerations without gaps from 0 to `last`.
  template <class E>
  Reader& choice(E& value, E last) {
    std::underlying_type_t<E> raw = 0;
    number(raw);
    if (raw > static_cast<std::underlying_type_t<E>>(last)) fail();
    value = static_cast<E>(raw);
    return *this;
  }
  Reader& text(std::string& value, std::size_t limit) {
    std::uint32_t size = 0;
    number(size);
    if (ok_ && size <= limit && take(size)) {
      value.assign(taken_, size);
    } else {
      fail();
    }
    return *this;
  }
  // A count of elements that take at least `element` bytes each.
  std::size_t count(std::size_t element, std::size_t limit) {
    std::uint32_t n = 0;
    number(n);
    if (!ok_ || n > limit || n > in_.size() / element) fail();
    return ok_ ? n : 0;
  }
  void fail() noexcept {
    ok_ = false;
    in_ = {};
  }
  bool ok() const noexcept { return ok_; }
  bool done() const noexcept { return ok_ && in_.empty(); }

 private:
  bool take(std::size_t size) noexcept {
    if (!ok_ || in_.size() < size) {
      fail();
      return false;
    }
    taken_ = in_.data();
    in_.remove_prefix(size);
    return true;
  }

  std::string_view in_;
  const char* taken_ = nullptr;
  bool ok_ = true;
};

}  // namespace sandforge::wire::guest
