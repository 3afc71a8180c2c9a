// Names of plugins, providers and services: they become part of paths, tables and log lines.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/manifest.hpp"

namespace sandforge::plugin {

// 1 to 64 of a-z, 0-9, '-', '_' and '.', the first a letter or a digit.
bool is_name(std::string_view text);

// Host services that this version knows, by their names in manifests.
inline constexpr std::array<const char*, 9> kServiceNames = {
    "log", "env", "clock", "paths", "executor", "state", "secrets", "process", "http"};

// Those of a manifest that it does not know, and the same for a person: "proces (did you mean
// process?), gpu".
std::vector<std::string> unknown_services(const Manifest& manifest);
std::string list_unknown_services(const std::vector<std::string>& names);

}  // namespace sandforge::plugin
