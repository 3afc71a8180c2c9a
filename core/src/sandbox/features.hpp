// What a command asks of its provider beyond running it, against the features that this names.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sandforge/backend.hpp"

namespace sandforge::sandbox {

// Beside those of a command: the machine ends when it is idle.
inline constexpr std::string_view kIdleTimeout = "idle.timeout";

// Whether check_features can refuse the command at all.
bool needs_features(const Command& command) noexcept;
// The first thing that the command asks for and the provider does not have, as the error.
std::optional<Error> check_features(const Command& command, const std::string& provider,
                                    const Features& features);
// what: the thing that needs the feature, for the message.
std::optional<Error> check_feature(std::string_view name, std::string_view what,
                                   const std::string& provider, const Features& features);

}  // namespace sandforge::sandbox
