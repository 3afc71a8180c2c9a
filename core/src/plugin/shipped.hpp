// The plugins that this build makes and installs beside the program; plugins/CMakeLists.txt writes
// the table.
#pragma once

#include <string_view>

namespace sandforge::plugin {

// By the name of the file, such as "local.so".
bool is_shipped(std::string_view file_name) noexcept;

}  // namespace sandforge::plugin
