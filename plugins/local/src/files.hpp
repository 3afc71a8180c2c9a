// The files extension: what lies in a session's folder, asked of its guest.
#pragma once

#include "sandforge/ext/files.h"

namespace sandforge::local {

const sf_files_ext* files_extension() noexcept;

}  // namespace sandforge::local
