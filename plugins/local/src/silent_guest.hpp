// A guest that does not answer: stopped by a signal, or a stranger at its socket. Whatever runs in
// a session can bring that about, and must not keep the host from ending the session.
#pragma once

#include <optional>

#include "guest_start.hpp"

namespace sandforge::local {

extern const char kSilentReason[];  // the reason of a Failure: the guest does not answer

Failure silent_guest(const SessionPlace& place);

// Kills the session's guest and removes its socket, so that the next guest can end what it ran.
// Nothing to kill is fine. Blocking: for pool threads.
std::optional<Failure> kill_silent_guest(const SessionPlace& place);

// The same, and ends what it ran: a guest is started once more, which does that. Blocking, too.
std::optional<Failure> end_silent_guest(const SessionPlace& place);

// Whether a program with these arguments (as /proc shows them: each ended by NUL) is the session's
// guest, whatever the path of its program.
bool is_guest_of(const SessionPlace& place, std::string_view command_line);

}  // namespace sandforge::local
