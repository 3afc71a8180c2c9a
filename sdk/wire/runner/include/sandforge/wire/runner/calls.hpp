// The parameters of a call of the boundary, in order. What the call writes (out-parameters, sinks),
// the object that is called and the callbacks do not travel: the frame's header names the call, and
// with it the objects and callbacks that belong to it.
#pragma once

#include <tuple>

#include "sandforge/wire/runner/codec.hpp"

namespace sandforge::wire::runner {

template <class P>
inline constexpr bool travels = !is_out<P> && !is_callbacks<P> && !is_callbacks_pointer<P> &&
                                !(is_handle<P> && !std::is_same_v<P, sf_context*>);

template <std::size_t I, class... Ps>
constexpr bool starts_array() {
  if constexpr (I + 2 < sizeof...(Ps)) {
    using T = std::tuple<Ps...>;
    return is_record_pointer<std::tuple_element_t<I, T>> &&
           std::is_same_v<std::tuple_element_t<I + 1, T>, std::size_t>;
  } else {
    return false;
  }
}

// From parameter I on; (first, count, stride) is one array.
template <std::size_t I = 0, class... Ps>
void write_call(Writer& w, const std::tuple<Ps...>& args) {
  if constexpr (I < sizeof...(Ps)) {
    if constexpr (starts_array<I, Ps...>()) {
      w.array(std::get<I>(args), std::get<I + 1>(args), std::get<I + 2>(args));
      return write_call<I + 3>(w, args);
    } else {
      if constexpr (travels<std::tuple_element_t<I, std::tuple<Ps...>>>) w.value(std::get<I>(args));
      write_call<I + 1>(w, args);
    }
  }
}

template <std::size_t I = 0, class... Ps>
void read_call(Reader& r, std::tuple<Ps...>& args) {
  if constexpr (I < sizeof...(Ps)) {
    if constexpr (starts_array<I, Ps...>()) {
      r.array(std::get<I>(args), std::get<I + 1>(args));
      std::get<I + 2>(args) = sizeof(*std::get<I>(args));
      return read_call<I + 3>(r, args);
    } else {
      if constexpr (travels<std::tuple_element_t<I, std::tuple<Ps...>>>) r.value(std::get<I>(args));
      read_call<I + 1>(r, args);
    }
  }
}

}  // namespace sandforge::wire::runner
