// Values for any type of the boundary, calls as text, and functions by the field table: what a test
// and its plugin need to compare a call over the wire with the same call in line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <sandforge/wire/runner/calls.hpp>

namespace sandforge::test {

namespace codec = wire::runner;

template <class T>
inline constexpr bool is_error_pointer = std::is_same_v<T, const sf_error*>;

// Fills anything with values that differ from each other: no member is zero, no text is empty.
class Samples {
 public:
  // Others for every seed.
  explicit Samples(std::string seed, sf_context* context = nullptr)
      : seed_(std::move(seed)), context_(context) {}

  template <class T>
  void fill(T& v) {
    if constexpr (std::is_integral_v<T>) {
      v = static_cast<T>(++next_ * 0x0101010101010101U);
    } else if constexpr (codec::is_text<T>) {
      const std::string value = seed_ + " " + std::to_string(++next_);
      char* copy = arena_.bytes(value.size());
      std::copy(value.begin(), value.end(), copy);
      v.ptr = reinterpret_cast<decltype(v.ptr)>(copy);
      v.len = value.size();
    } else if constexpr (std::is_same_v<T, sf_context*>) {
      v = context_;
    } else if constexpr (is_error_pointer<T>) {
      v = nullptr;  // the call succeeds
    } else if constexpr (codec::is_record_pointer<T> || codec::is_array_member<T>) {
      auto* record = arena_.make<std::remove_const_t<std::remove_pointer_t<T>>>(2);
      fill(record[0]);
      fill(record[1]);
      v = record;
    } else if constexpr (codec::Fields<T>::known && !codec::is_callbacks<T>) {
      v = {};
      bool count = false;
      codec::Fields<T>::visit([&](std::string_view, auto member) {
        using M = std::remove_reference_t<decltype(v.*member)>;
        fill(v.*member);
        if constexpr (std::is_same_v<M, std::size_t>) {
          if (count) v.*member = 2;
        }
        count = codec::is_array_member<M>;
      });
      if constexpr (requires { v.struct_size; }) v.struct_size = sizeof(T);
    }
  }

  // Leaves alone what a call writes, what it is called on and its callbacks.
  template <class... P>
  void fill_call(std::tuple<P...>& args) {
    fill_from<0>(args);
  }

 private:
  template <std::size_t I, class... P>
  void fill_from(std::tuple<P...>& args) {
    if constexpr (I < sizeof...(P)) {
      auto& value = std::get<I>(args);
      if constexpr (codec::travels<std::tuple_element_t<I, std::tuple<P...>>>) fill(value);
      if constexpr (codec::starts_array<I, P...>()) {
        std::get<I + 1>(args) = 2;
        std::get<I + 2>(args) = sizeof(*value);
        fill_from<I + 3>(args);
      } else {
        fill_from<I + 1>(args);
      }
    }
  }

  const std::string seed_;
  sf_context* const context_;
  codec::Arena arena_;
  std::uint64_t next_ = 0;
};

// Writes a context as what it says, so that it reads the same on both sides.
class ContextByFields final : public codec::Handles {
 public:
  void write(codec::Writer& out, sf_context* context) override {
    out.value<std::uint8_t>(context != nullptr);
    if (context != nullptr) out.value(*context->vtbl->fields(context));
  }
  sf_context* read_context(codec::Reader& in) override {
    in.fail();
    return nullptr;
  }
  sf_lane* lane() override { return nullptr; }
};

// All that travels of a call, for comparing and for reading: what is no letter is in hex.
template <class... P>
std::string text_of(const std::tuple<P...>& args) {
  ContextByFields contexts;
  codec::Writer out(&contexts);
  codec::write_call(out, args);
  std::string text;
  for (const char c : out.out) {
    const auto byte = static_cast<unsigned char>(c);
    char hex[8];
    std::snprintf(hex, sizeof hex, byte > ' ' && byte < 0x7f && byte != '%' ? "%c" : "%%%02x",
                  byte);
    text += hex;
  }
  return text;
}

// ---- Structs of functions from the field table: Member<S>::each<V>(v) calls v.template
// operator()<&S::member>() for every member.

template <class S>
struct Member;
#define SF_STRUCT(s, kind, size) \
  template <>                    \
  struct Member<s> {             \
    template <class V>           \
    static void each([[maybe_unused]] V&& v) {
#define SF_MEMBER(s, m, offset, size) v.template operator()<&s::m>();
#define SF_STRUCT_END(s, last) \
  }                            \
  }                            \
  ;
#include "sandforge/wire/runner/layout.inc"
#undef SF_STRUCT
#undef SF_MEMBER
#undef SF_STRUCT_END

// "sf_files_ext.read"
template <class S, class T>
std::string name_of(T S::*member) {
  std::string out = codec::Fields<S>::name;
  codec::Fields<S>::visit([&](std::string_view name, auto each) {
    if constexpr (std::is_same_v<decltype(each), T S::*>) {
      if (each == member) out += "." + std::string(name);
    }
  });
  return out;
}

// A struct of callbacks whose functions are Function<&C::member>::call.
template <template <auto> class Function, class C>
C callbacks_of(void* ctx) {
  C out{};
  Member<C>::each([&]<auto M>() {
    if constexpr (codec::is_function_pointer<std::decay_t<decltype(out.*M)>>)
      out.*M = &Function<M>::call;
  });
  if constexpr (requires { out.struct_size; }) out.struct_size = sizeof(C);
  out.ctx = ctx;
  return out;
}

// An asynchronous function: it has callbacks among its parameters, and an error sink at the end.
template <class F>
inline constexpr bool is_asynchronous = false;
template <class Self, class... P>
inline constexpr bool is_asynchronous<sf_status (*)(Self*, P...) noexcept> =
    ((codec::is_callbacks<P> || codec::is_callbacks_pointer<P>) || ...);

}  // namespace sandforge::test
