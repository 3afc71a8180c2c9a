// Small files that a person names: whatever lies there, reading it does not block.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace sandforge::config_detail {

// The first `max_bytes` of a regular file; or nothing, and why in `error`. Pipes, devices and what
// the kernel only shows as a regular file but would wait for are refused.
std::optional<std::string> read_regular_file(const std::filesystem::path& path,
                                             std::size_t max_bytes, std::string& error);

}  // namespace sandforge::config_detail
