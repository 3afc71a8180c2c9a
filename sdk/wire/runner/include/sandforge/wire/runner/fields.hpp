// The field table (layout.inc) as something that templates can walk, and the kinds of members and
// parameters that it leads to. What crosses to a runner, and how, follows from types alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sandforge/wire/runner/all_headers.h"

namespace sandforge::wire::runner {

// Fields<S>::visit(v) calls v(name, pointer to member) for each member, in order.
template <class S>
struct Fields {
  static constexpr bool known = false;
};
#define SF_STRUCT(s, kind, size)            \
  template <>                               \
  struct Fields<s> {                        \
    static constexpr bool known = true;     \
    static constexpr const char* name = #s; \
    template <class V>                      \
    static constexpr void visit(V&& v) {
#define SF_MEMBER(s, m, offset, size) v(#m, &s::m);
#define SF_STRUCT_END(s, last) \
  }                            \
  }                            \
  ;
#include "sandforge/wire/runner/layout.inc"
#undef SF_STRUCT
#undef SF_MEMBER
#undef SF_STRUCT_END

// Calls v.template operator()<S>() for each struct of the table.
template <class V>
constexpr void for_each_struct(V&& v) {
#define SF_STRUCT(s, kind, size) v.template operator()<s>();
#define SF_MEMBER(s, m, offset, size)
#define SF_STRUCT_END(s, last)
#include "sandforge/wire/runner/layout.inc"
#undef SF_STRUCT
#undef SF_MEMBER
#undef SF_STRUCT_END
}

// ---- Kinds of members and parameters

template <class T>
inline constexpr bool is_function_pointer =
    std::is_pointer_v<T>&& std::is_function_v<std::remove_pointer_t<T>>;

template <class T, class = void>
inline constexpr bool has_ctx = false;
template <class T>
inline constexpr bool has_ctx<T, std::void_t<decltype(std::declval<T&>().ctx)>> = true;

template <class T>
inline constexpr bool is_text = std::is_same_v<T, sf_str> || std::is_same_v<T, sf_bytes>;

// Members that point at the first of several elements; the count is the next member.
template <class T>
inline constexpr bool is_array_member =
    std::is_same_v<T, const sf_bytes*> || std::is_same_v<T, const sf_env_entry*> ||
    std::is_same_v<T, const sf_http_header*>;

template <class T>
inline constexpr bool is_sink =
    std::is_same_v<T, const sf_error_sink*> || std::is_same_v<T, const sf_text_sink*>;

// A struct of callbacks: a completion by value, events by pointer.
template <class T>
inline constexpr bool is_callbacks = has_ctx<T> && !std::is_pointer_v<T>;
template <class T>
inline constexpr bool is_callbacks_pointer = false;
template <class T>
inline constexpr bool is_callbacks_pointer<const T*> = has_ctx<T> && !is_sink<const T*>;

template <class T>
inline constexpr bool is_record_pointer = false;
template <class T>
inline constexpr bool is_record_pointer<const T*> = Fields<T>::known && !is_text<T> && !has_ctx<T>;

// Objects, by pointer: a vtable behind it, or opaque.
template <class T>
inline constexpr bool is_handle =
    std::is_pointer_v<T> && !std::is_const_v<std::remove_pointer_t<T>> && !is_function_pointer<T> &&
    !std::is_pointer_v<std::remove_pointer_t<T>> && !std::is_integral_v<std::remove_pointer_t<T>>;

// What a call writes and a request therefore does not carry.
template <class T>
inline constexpr bool is_out = is_sink<T> || std::is_same_v<T, std::size_t*> ||
                               (std::is_pointer_v<T> &&
                                std::is_pointer_v<std::remove_pointer_t<T>>);

// ---- Functions of the table by number

// The place of a member that is a function: its struct and its place in that. Both sides are built
// from one table, which the first frame proves.
using Method = std::uint16_t;

template <class S>
constexpr std::uint8_t struct_number() {
  std::uint8_t number = 0, found = 0;
  for_each_struct([&]<class T>() {
    ++number;
    if (std::is_same_v<S, T>) found = number;
  });
  return found;
}

template <class S, class M>
constexpr std::uint8_t member_number(M member) {
  std::uint8_t number = 0, found = 0;
  Fields<S>::visit([&](std::string_view, auto each) {
    ++number;
    if constexpr (std::is_same_v<decltype(each), M>) {
      if (each == member) found = number;
    }
  });
  return found;
}

template <class S, class T>
constexpr Method method_of(T S::*member) {
  return static_cast<Method>(struct_number<S>() << 8 | member_number<S>(member));
}

// Of the whole table, so that two builds that differ in it notice.
constexpr std::uint64_t table_fingerprint() {
  std::uint64_t hash = 14695981039346656037U;
  const auto add = [&](std::string_view text) {
    for (const char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  };
#define SF_STRUCT(s, kind, size) add(#s ":" #size);
#define SF_MEMBER(s, m, offset, size) add(#m ":" #offset);
#define SF_STRUCT_END(s, last)
#include "sandforge/wire/runner/layout.inc"
#undef SF_STRUCT
#undef SF_MEMBER
#undef SF_STRUCT_END
  return hash;
}

}  // namespace sandforge::wire::runner
