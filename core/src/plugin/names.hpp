// Names of plugins, providers and services: they become part of paths, tables and log lines.
#pragma once

#include <string_view>

namespace sandforge::plugin {

// 1 to 64 of a-z, 0-9, '-', '_' and '.', the first a letter or a digit.
bool is_name(std::string_view text);

}  // namespace sandforge::plugin
