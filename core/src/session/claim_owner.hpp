// Who holds a claim: a process that other hosts on the same machine can recognise as gone.
#pragma once

#include <string>

namespace sandforge {

// Names this process (boot, pid namespace, pid, start time) and one manager in it.
std::string make_claim_owner();

// True only when the owner was a process of this boot and pid namespace that is no more.
bool claim_owner_is_gone(const std::string& owner);
// True only when the owner is a process of this boot and pid namespace that still runs.
bool claim_owner_lives(const std::string& owner);

}  // namespace sandforge
