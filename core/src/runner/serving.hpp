// Which calls a side serves, by number. A file of each side fills the table from the field table.
#pragma once

#include <array>
#include <type_traits>

#include "runner/callee.hpp"

namespace sandforge::runner {

inline constexpr std::size_t kMaxMembers = 24;
using ServeTable = std::array<ServeFn, 256 * kMaxMembers>;

inline ServeFn serve_function(const ServeTable& table, Method method) noexcept {
  const std::size_t member = method & 0xFF;
  return member < kMaxMembers ? table[(method >> 8) * kMaxMembers + member] : nullptr;
}

// Serves<S>: whether the side serves the asynchronous functions of S.
template <template <class> class Serves, auto M>
struct ServeEntry {
  static void add(ServeTable&) {}
};
template <template <class> class Serves, class S, class Self, class... P,
          sf_status (*S::*M)(Self*, P...) noexcept>
struct ServeEntry<Serves, M> {
  static void add(ServeTable& table) {
    constexpr bool asynchronous = ((wire::is_callbacks<P> || wire::is_callbacks_pointer<P>) || ...);
    if constexpr (Serves<S>::value && asynchronous) {
      constexpr Method method = wire::method_of(M);
      static_assert((method & 0xFF) < kMaxMembers);
      table[(method >> 8) * kMaxMembers + (method & 0xFF)] = &Serve<M>::run;
    }
  }
};

}  // namespace sandforge::runner
