// A connected socket, a pipe end or a terminal as a stream with credit.
#pragma once

#include <cstdint>

#include "plugin/plugin.hpp"
#include "sandforge/abi.h"
#include "sandforge/runtime.hpp"

namespace sandforge::services {

// Takes over `descriptor` and writes the stream to *out before any event. On an error the
// descriptor stays the caller's. Events come on the lane.
Result<void> adopt_descriptor(plugin::Plugin& plugin, Runtime& runtime, Lane lane, int descriptor,
                              std::uint64_t window, const sf_stream_events& events,
                              sf_stream** out);

}  // namespace sandforge::services
