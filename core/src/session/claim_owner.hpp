// Who holds a claim: a process that other hosts on the same machine can recognise as gone.
#pragma once

#include <cstdint>
#include <string>

namespace sandforge {

// Names this process (boot, pid namespace, pid, start time) and one manager in it.
std::string make_claim_owner();

// True only when the owner was a process of an earlier boot, or of this boot and pid namespace, and
// is no more.
bool claim_owner_is_gone(const std::string& owner);
// True only when the owner is a process of this boot and pid namespace that still runs.
bool claim_owner_lives(const std::string& owner);

// The same of who has a session open, for one that was not used for that long. A process of another
// pid namespace cannot be looked for: it is taken for gone when the session was not used for a
// week.
bool holder_is_gone(const std::string& holder, std::int64_t unused_ns);

}  // namespace sandforge
