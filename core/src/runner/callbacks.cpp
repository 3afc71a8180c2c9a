#include "runner/callbacks.hpp"

#include <array>

namespace sandforge::runner {
namespace {

// Structs of callbacks that cross. Those of services that run inside the runner do not.
template <class C>
constexpr bool crosses = wire::is_callbacks<C> && !std::is_same_v<C, sf_error_sink> &&
                         !std::is_same_v<C, sf_text_sink> && !std::is_same_v<C, sf_http_events>;

constexpr std::size_t kMembers = 16;
using Functions = std::array<InvokeFn, 256 * kMembers>;

template <auto M>
struct Entry {
  static void add(Functions&) {}
};
template <class C, class... P, void (*C::*M)(void*, P...) noexcept>
struct Entry<M> {
  static void add(Functions& functions) {
    if constexpr (crosses<C>) {
      constexpr Method method = wire::method_of(M);
      static_assert((method & 0xFF) < kMembers);
      functions[(method >> 8) * kMembers + (method & 0xFF)] =
          [](plugin::Plugin& plugin, const void* callbacks, wire::Reader& in,
             std::uint64_t& delivered) {
            return Invoke<M>::run(plugin, *static_cast<const C*>(callbacks), in, delivered);
          };
    }
  }
};

Functions all_functions() {
  Functions out{};
#define SF_STRUCT(s, kind, size)
#define SF_MEMBER(s, m, offset, size) Entry<&s::m>::add(out);
#define SF_STRUCT_END(s, last)
#include "sandforge/wire/runner/layout.inc"
#undef SF_STRUCT
#undef SF_MEMBER
#undef SF_STRUCT_END
  return out;
}

template <class C, auto M>
void set_member(C& callbacks) noexcept {
  if constexpr (wire::is_function_pointer<std::decay_t<decltype(callbacks.*M)>>)
    callbacks.*M = &SendEvent<M>::call;
}

}  // namespace

InvokeFn invoke_function(Method method) noexcept {
  static const Functions functions = all_functions();
  const std::size_t member = method & 0xFF;
  return member < kMembers ? functions[(method >> 8) * kMembers + member] : nullptr;
}

#define SF_STRUCT(s, kind, size) \
  template <>                    \
  struct Fill<s> {               \
    template <class C>           \
    static void all([[maybe_unused]] C& callbacks) noexcept {
#define SF_MEMBER(s, m, offset, size) set_member<C, &s::m>(callbacks);
#define SF_STRUCT_END(s, last) \
  }                            \
  }                            \
  ;
namespace {
template <class C>
struct Fill;
#include "sandforge/wire/runner/layout.inc"
}  // namespace
#undef SF_STRUCT
#undef SF_MEMBER
#undef SF_STRUCT_END

template <class C>
C sending_callbacks(void* ctx) noexcept {
  C out{};
  Fill<C>::all(out);
  if constexpr (requires { out.struct_size; }) out.struct_size = sizeof(C);
  out.ctx = ctx;
  return out;
}

#define SF_CALLBACKS(C) template C sending_callbacks<C>(void*) noexcept;
SF_CALLBACKS(sf_completion)
SF_CALLBACKS(sf_stream_events)
SF_CALLBACKS(sf_process_events)
SF_CALLBACKS(sf_access_completion)
SF_CALLBACKS(sf_text_completion)
SF_CALLBACKS(sf_start_events)
SF_CALLBACKS(sf_info_completion)
SF_CALLBACKS(sf_describe_completion)
SF_CALLBACKS(sf_build_completion)
SF_CALLBACKS(sf_directory_completion)
SF_CALLBACKS(sf_sweep_completion)
SF_CALLBACKS(sf_file_list_completion)
SF_CALLBACKS(sf_state_value_completion)
SF_CALLBACKS(sf_lifetime_completion)
SF_CALLBACKS(sf_metrics_completion)
SF_CALLBACKS(sf_process_list_completion)
SF_CALLBACKS(sf_checkpoint_completion)
SF_CALLBACKS(sf_template_completion)
#undef SF_CALLBACKS

}  // namespace sandforge::runner
