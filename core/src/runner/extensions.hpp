// The extensions that cross, and which functions of them a plugin has.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "runner/peer.hpp"
#include "sandforge/wire/runner/fields.hpp"

namespace sandforge::runner {

template <class E>
struct Extension {
  using Table = E;
  const char* id;
};

inline constexpr std::tuple kProviderExtensions{
    Extension<sf_template_ext>{SF_EXT_TEMPLATE}, Extension<sf_builds_ext>{SF_EXT_BUILDS},
    Extension<sf_directory_ext>{SF_EXT_DIRECTORY}, Extension<sf_health_ext>{SF_EXT_HEALTH}};
inline constexpr std::tuple kSandboxExtensions{
    Extension<sf_processes_ext>{SF_EXT_PROCESSES}, Extension<sf_pty_ext>{SF_EXT_PTY},
    Extension<sf_files_ext>{SF_EXT_FILES},         Extension<sf_ports_ext>{SF_EXT_PORTS},
    Extension<sf_snapshot_ext>{SF_EXT_SNAPSHOT},   Extension<sf_lifetime_ext>{SF_EXT_LIFETIME},
    Extension<sf_metrics_ext>{SF_EXT_METRICS}};

template <class S>
constexpr bool is_extension() {
  const auto in = [](const auto& list) {
    return std::apply(
        [](const auto&... each) {
          return (std::is_same_v<S, typename std::decay_t<decltype(each)>::Table> || ...);
        },
        list);
  };
  return in(kProviderExtensions) || in(kSandboxExtensions);
}

inline sf_str id_text(const char* id) noexcept {
  return {id, std::string_view(id).size()};
}

// Bit n: function n of the table is there. Zero: the extension is absent.
template <class E>
std::uint32_t functions_of(const E* table) noexcept {
  std::uint32_t bits = 0, bit = 1;
  if (table == nullptr) return 0;
  wire::Fields<E>::visit([&](std::string_view, auto member) {
    using M = std::decay_t<decltype(table->*member)>;
    if constexpr (wire::is_function_pointer<M>) {
      const auto end = reinterpret_cast<const char*>(&(table->*member)) + sizeof(M);
      const auto size = static_cast<std::size_t>(end - reinterpret_cast<const char*>(table));
      if (table->struct_size >= size && table->*member != nullptr) bits |= bit;
      bit <<= 1;
    }
  });
  return bits;
}

// Leaves only the functions that the bits name.
template <class E>
void keep_functions(E& table, std::uint32_t bits) noexcept {
  std::uint32_t bit = 1;
  wire::Fields<E>::visit([&](std::string_view, auto member) {
    using M = std::decay_t<decltype(table.*member)>;
    if constexpr (wire::is_function_pointer<M>) {
      if ((bits & bit) == 0) table.*member = nullptr;
      bit <<= 1;
    }
  });
}

}  // namespace sandforge::runner
