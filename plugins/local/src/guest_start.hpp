// Finding or starting the guest of a session. Blocking: for pool threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "paths.hpp"

namespace sandforge::local {

struct SessionPlace {
  std::string root;               // absolute
  std::string name;               // of the session's folder, right below the root
  std::string working_directory;  // absolute; empty: the session's folder
  std::string guest_program;      // absolute
  // Also the provider's own id of the session: what it was started with leads to it again, whatever
  // the root is by then.
  std::string folder() const { return root + "/" + name; }
  // Where commands run that name no folder.
  std::string commands_folder() const {
    return working_directory.empty() ? folder() : working_directory;
  }
};

struct GuestConnection {
  Descriptor socket;            // empty: no guest runs, and none was to be started
  bool folder_created = false;  // the session's folder is new
  bool guest_started = false;   // this call started the guest
};

enum class Guest {
  if_running,  // looks only
  running,     // makes the folders, and starts the guest where none answers
  // A guest that was killed is started once more, for it ends what the killed one left; else looks
  // only.
  to_end,
};

inline constexpr char kGuestSocket[] = "guest";  // in the guest's folder

// What the guest is started with, after the name of its program.
std::vector<std::string> guest_arguments(const SessionPlace& place);

// Hosts that start a guest at the same time get the same one. A guest that takes no connection
// fails with kSilentReason (silent_guest.hpp).
std::optional<Failure> connect_guest(const SessionPlace& place, Guest wanted, GuestConnection& out);

// The folder of the session's guest. Empty out: it is not there.
std::optional<Failure> open_guest_folder(const SessionPlace& place, Descriptor& out);

// The same, made where it is missing, as is all above it.
std::optional<Failure> make_guest_folder(const SessionPlace& place, Descriptor& out);
// Its path, for people.
std::string guest_folder(const SessionPlace& place);

// Removes what the guest left, after its end. The session's folder stays.
std::optional<Failure> remove_guest(const SessionPlace& place);

// Whether the folder in which the session's commands run is there.
bool folder_exists(const SessionPlace& place);

}  // namespace sandforge::local
