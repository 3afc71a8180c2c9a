// The provider's sandbox as a session has it: each start, stop and removal is done under the
// session's claim, on the machine that the store names, and its outcome is written down.
#pragma once

#include <memory>

#include "session/session_core.hpp"

namespace sandforge {

// Wraps the provider so that the sandboxes it makes belong to the session.
//
// The claim that start takes is kept when start succeeds: the start hook does the set-up under it
// and releases it.
std::shared_ptr<ProviderBackend> make_session_provider(std::shared_ptr<ProviderBackend> provider,
                                                       std::shared_ptr<SessionCore> core);

}  // namespace sandforge
