// Arrays of appendable structs, which a plugin gives with count and stride.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "plugin/abi_call.hpp"

namespace sandforge::plugin {

// `whole` says of an entry whether it has all members of version 1.0; a stride that is smaller than
// they are means other structs than these. `what` names the entries: "processes".
template <class Raw, class Whole, class Read>
auto read_list(Plugin& plugin, const char* what, const Raw* first, std::size_t count,
               std::size_t stride, std::size_t most, Whole whole, Read read)
    -> Result<std::vector<decltype(read(*first))>> {
  std::vector<decltype(read(*first))> out;
  if (count == 0) return out;
  const std::string list = std::string("a list of ") + what;
  if (first == nullptr || stride < sizeof(Raw) || count > most) {
    plugin.faults.report(Fault::bad_value, list);
    return crashed(plugin, list + " has an impossible size");
  }
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto* item =
        reinterpret_cast<const Raw*>(reinterpret_cast<const char*>(first) + i * stride);
    if (!whole(item)) {
      plugin.faults.report(Fault::missing_value, "an entry of " + list);
      return crashed(plugin, "an entry of " + list + " is incomplete");
    }
    out.push_back(read(*item));
  }
  return out;
}

}  // namespace sandforge::plugin
