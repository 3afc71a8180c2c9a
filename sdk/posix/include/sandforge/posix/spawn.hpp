// Starts a program in a session of its own, and tells precisely what failed.
//
// The child has the three descriptors that it was given and no other, default signal dispositions,
// an empty signal mask, and exactly the environment of the request. Nothing is allocated between
// the fork and the exec, so that a process with many threads may spawn too.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <optional>
#include <string>
#include <vector>

#include "sandforge/posix/user.hpp"

namespace sandforge::posix {

struct SpawnSpec {
  std::vector<std::string> argv;         // argv[0] without a slash is looked up in PATH of `env`
  std::vector<std::string> environment;  // NAME=value
  std::string cwd;                       // empty: that of the caller
  std::optional<Identity> user;          // who to become; needs the capabilities
  int stdin_fd = -1;                     // all three are needed; two may be the same
  int stdout_fd = -1;
  int stderr_fd = -1;
  bool controlling_terminal = false;  // stdin_fd is a terminal and becomes the session's own
  int death_signal = 0;               // sent to the child when the spawning thread ends; 0: none
  int cgroup_procs_fd = -1;           // an open cgroup.procs to join before the exec; -1: none
  int open_files_limit = 0;           // soft RLIMIT_NOFILE; 0: as the caller's
  // What changed_signals() found, where nothing has changed since: then only these are reset, which
  // saves a system call for each of the others. Absent: all are.
  std::optional<sigset_t> changed_signals;
  SpawnSpec() {}
};

enum class SpawnStage : int {
  none,       // it runs
  fork,       // no process could be made
  setup,      // session, descriptors, terminal
  user,       // groups, gid or uid
  directory,  // cwd
  exec,
};

struct SpawnResult {
  pid_t pid = -1;
  SpawnStage stage = SpawnStage::none;
  int error_number = 0;
  std::string path;  // what could not be entered or executed
};

// Signals whose disposition in this process is not the default.
sigset_t changed_signals() noexcept;

// Blocks until the exec succeeded or failed. On failure nothing is left to reap.
SpawnResult spawn(const SpawnSpec& spec);

}  // namespace sandforge::posix
