// Text and bytes of the boundary, and reading structs that another version filled.
#pragma once

#include <sandforge/abi.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace sandforge::plugin {

// Borrow from the view, which must outlive the use.
inline sf_str to_str(std::string_view text) noexcept {
  return {text.data(), text.size()};
}
inline sf_bytes to_bytes(std::string_view bytes) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

// An absent value is a null pointer, which an empty view of a literal is not.
inline sf_str maybe_str(const std::optional<std::string>& text) noexcept {
  return text ? to_str(std::string_view(*text)) : sf_str{nullptr, 0};
}
inline sf_bytes maybe_bytes(const std::optional<std::string>& bytes) noexcept {
  return bytes ? to_bytes(std::string_view(*bytes)) : sf_bytes{nullptr, 0};
}

inline std::string_view view(sf_str text) noexcept {
  return text.ptr == nullptr ? std::string_view() : std::string_view(text.ptr, text.len);
}
inline std::string_view view(sf_bytes bytes) noexcept {
  return bytes.ptr == nullptr
             ? std::string_view()
             : std::string_view(reinterpret_cast<const char*>(bytes.ptr), bytes.len);
}

// A copy; absent when the pointer is null.
template <class Text>
std::optional<std::string> copy_optional(Text text) {
  if (text.ptr == nullptr) return std::nullopt;
  return std::string(view(text));
}
template <class Text>
std::string copy(Text text) {
  return std::string(view(text));
}

namespace detail {

// What the other side filled of an appendable struct; the rest stays as defaults says.
template <class T>
T read_appendable(const T* from, T defaults = T{}) noexcept {
  if (from == nullptr) return defaults;
  std::memcpy(&defaults, from, std::min(from->struct_size, sizeof(T)));
  return defaults;
}

// Element i of an array of appendable structs.
template <class T>
T read_element(const T* first, std::size_t stride, std::size_t i, T defaults = T{}) noexcept {
  const auto* at = reinterpret_cast<const unsigned char*>(first) + i * stride;
  return read_appendable(reinterpret_cast<const T*>(at), defaults);
}

}  // namespace detail
}  // namespace sandforge::plugin
