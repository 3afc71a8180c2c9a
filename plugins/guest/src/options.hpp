// The command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sandforge::guest {

struct ServeOptions {
  std::string socket;  // either this
  int fd = -1;         // or this: one connected stream socket
  int ready_fd = -1;   // gets one byte once the socket takes connections, then is closed
  std::string root;    // where commands run that name no folder; empty: where the guest runs
  // The folder that files are served of; empty: the root. It holds the root.
  std::string files_root;
  // That folder may be a symbolic link. Else one in its place is none of the host's.
  bool files_link = false;
  // No foreground command, no open channel, and no host that asked: end all and exit; 0: never.
  std::int64_t idle_ms = 0;
  std::int64_t unused_ms = 0;    // no host and no process at all: exit; 0: never
  std::int64_t grace_ms = 2000;  // when the guest itself ends
  std::int64_t ping_ms = 15000;  // of silence of a host; after four of them it is lost; 0: never
  std::size_t log_bytes = 1024 * 1024;
  std::size_t log_total_bytes = 64 * 1024 * 1024;
  bool daemon = false;  // go into the background, return once the socket takes connections
  bool keep = false;    // commands that are not detached outlive their connection too
  // Runs beside the commands that hosts send; when it ends, the guest ends all and exits as it did.
  std::vector<std::string> main_command;
  bool inherit = false;  // commands get the guest's own environment, until it is replaced
  bool group = true;     // a control group of its own, where one can be made
};

struct RelayOptions {
  std::string socket;
  std::int64_t wait_ms = 10000;            // for the socket to take the connection
  std::int64_t write_deadline_ms = 30000;  // without progress
};

enum class Role { serve, relay, version, help, wrong };

struct CommandLine {
  Role role = Role::wrong;
  ServeOptions serve;
  RelayOptions relay;
  std::string wrong;  // what is wrong, for people
};

CommandLine parse_command_line(int argc, char** argv);
extern const char kUsage[];

}  // namespace sandforge::guest
