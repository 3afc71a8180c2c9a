// What kind of file a program is.
#pragma once

#include <optional>
#include <string_view>

namespace sandforge::docker {

// Whether a program of this machine names a loader, which an image may lack; nothing: it is none.
std::optional<bool> needs_loader(std::string_view program);

}  // namespace sandforge::docker
