// Which processes belong to a command, and how they are signalled without hitting a stranger.
//
// The caller is a subreaper: whoever loses its parent becomes its child, so every descendant of a
// command stays below the caller whatever it does to its session or its group. Members of one
// command among those of others are known by, in this order: descent from its leader, its session,
// the mark in their environment, descent from a member.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <string>
#include <vector>

#include "sandforge/posix/procfs.hpp"

namespace sandforge::posix {

// Makes orphaned descendants children of the calling process. False with errno set.
bool become_subreaper() noexcept;

struct Member {
  pid_t pid = 0;
  std::uint64_t start_time = 0;
  pid_t parent = 0;
};

// How one command is recognised.
struct TreeIdentity {
  pid_t leader = 0;           // its session has the same number
  bool leader_alive = false;  // not reaped yet, so that its pid cannot be somebody else's
  std::string mark_name;      // an environment variable that marks members; empty: none
  std::string mark_value;
  std::vector<Member> known;  // found earlier
};

// Finds members in one look at all processes. `root` is the calling process. `foreign` are leaders
// and members of other commands below `root`: they and theirs are left out.
std::vector<Member> find_members(const Procfs& proc, const std::vector<ProcessStat>& processes,
                                 pid_t root, const TreeIdentity& tree,
                                 const std::vector<pid_t>& foreign);

// Every living descendant of `root`, without `root`.
std::vector<Member> find_descendants(const std::vector<ProcessStat>& processes, pid_t root);

// Sends `signal` if the pid still is the process that was found; through a pidfd where there are
// any. False when it is gone or may not be signalled.
bool signal_member(const Procfs& proc, const Member& member, int signal) noexcept;

}  // namespace sandforge::posix
