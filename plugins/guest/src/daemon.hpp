// `serve --daemon`: in the background, told once the socket takes connections.
#pragma once

#include "options.hpp"

namespace sandforge::guest {

// Returns to the caller as soon as the guest in the background listens: 0. Else what its serve
// returned.
int serve_in_background(ServeOptions options);

}  // namespace sandforge::guest
