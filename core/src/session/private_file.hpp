// A file that only its owner can reach.
#pragma once

#include <string>

#include "sandforge/error.hpp"

namespace sandforge {

// Makes the folders above the path that are absent (mode 0700) and the file (mode 0600, empty).
// A file of ours that is there already is brought to 0600. forbidden "store.unsafe_permissions":
// somebody else could replace the file, or it is no regular file of ours.
Result<void> make_private_file(const std::string& path);

}  // namespace sandforge
