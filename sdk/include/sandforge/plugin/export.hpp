// SANDFORGE_PLUGIN: makes providers the plugin of a shared library.
#pragma once

#include "factory.hpp"

namespace sandforge::plugin::detail {

template <class Factory>
std::unique_ptr<FactoryBase> make_factory(const Opening& opening) {
  if constexpr (std::is_constructible_v<Factory, const Opening&>) {
    return std::make_unique<Factory>(opening);
  } else {
    return std::make_unique<Factory>();
  }
}

template <class... Factories>
std::unique_ptr<FactoryBase> open_by_name(std::string_view name, const Opening& opening) {
  std::unique_ptr<FactoryBase> made;
  const bool found =
      ((name == Factories::provider ? (made = make_factory<Factories>(opening), true) : false) ||
       ...);
  if (!found) {
    throw Error(Code::not_found, "this plugin has no provider \"" + std::string(name) + "\"");
  }
  return made;
}

// The plugin of one or more factory classes.
template <class... Factories>
const sf_plugin* plugin_of() noexcept {
  static constexpr sf_plugin plugin = {
      sizeof(sf_plugin), SF_ABI_MAJOR, SF_ABI_MINOR,
      [](sf_host* host, const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          if (host->vtbl->abi_major != SF_ABI_MAJOR) {
            throw Error(Code::unsupported, "the host speaks another major version");
          }
          services().fill(host);
        });
      },
      [](const sf_open_request* request, sf_provider** provider,
         const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const auto r = read_appendable(request);
          const Opening opening(Options::parse(view(r.options)), Lane(r.lane));
          std::unique_ptr<FactoryBase> made = open_by_name<Factories...>(view(r.provider), opening);
          *provider = made->attach(opening.lane);
          static_cast<void>(made.release());  // the host owns it now, by its reference
        });
      }};
  return &plugin;
}

}  // namespace sandforge::plugin::detail

// Names the factory classes of this library, once, outside any namespace.
#define SANDFORGE_PLUGIN(...)                                        \
  extern "C" SF_EXPORT const sf_plugin* SF_PLUGIN_ENTRY() noexcept { \
    return ::sandforge::plugin::detail::plugin_of<__VA_ARGS__>();    \
  }
