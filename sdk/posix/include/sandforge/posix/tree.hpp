// Which processes belong to a command, and how they are signalled without hitting a stranger.
//
// The caller is a subreaper: whoever loses its parent becomes its child, so every descendant of a
// command stays below the caller whatever it does to its session or its group. Members of one
// command among those of others are known by, in this order: descent from its leader, its session,
// the mark in their environment, descent from a member.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
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
  bool mark_is_prefix = false;  // `mark_value` is how the mark begins
  std::vector<Member> known;    // found earlier
  // The caller is no subreaper: members may be below somebody else. They are known by all but
  // descent from the caller.
  bool anywhere = false;
};

// Finds members in one look at all processes. `root` is the calling process. `foreign` are leaders
// and members of other commands below `root`: they and theirs are left out.
std::vector<Member> find_members(const Procfs& proc, const std::vector<ProcessStat>& processes,
                                 pid_t root, const TreeIdentity& tree,
                                 const std::vector<pid_t>& foreign);

// Those with the mark of `tree`, wherever they are, and everything below them, whatever it did to
// its environment. Without the caller.
std::vector<Member> find_marked(const Procfs& proc, const std::vector<ProcessStat>& processes,
                                const TreeIdentity& tree);

// Every living descendant of `root`, without `root`.
std::vector<Member> find_descendants(const std::vector<ProcessStat>& processes, pid_t root);

// Whether nobody is left. A look at all processes takes its time: who moves from child to child
// meanwhile, and gets a number that the look has passed already, is not met. Not so twice in a row.
class QuietLooks {
 public:
  static constexpr int kEnough = 3;
  // `look` is the number of the look: it may be told of more than once. True when enough of them in
  // a row saw nobody.
  bool enough(bool saw_nobody, std::uint64_t look) noexcept;

 private:
  int quiet_ = 0;
  std::uint64_t last_ = 0;
};

// Whether the calling process has no child, ended ones included. The kernel answers from one
// moment, so that nobody is missed: nothing is left below a subreaper then.
bool is_childless() noexcept;

// Sends `signal` if the pid still is the process that was found; through a pidfd where there are
// any. False when it is gone or may not be signalled.
bool signal_member(const Procfs& proc, const Member& member, int signal) noexcept;

// Stops a tree that starts processes faster than it is looked at: each process is stopped in the
// moment in which it is met, with its whole process group, and nothing but newcomers is looked at
// again. Newcomers that have ended and are children of the caller are reaped.
class Pursuit {
 public:
  // `all`: every process below `root` is meant, and not only those of `tree`.
  Pursuit(const Procfs& proc, pid_t root, const TreeIdentity& tree, bool all);

  // Who is a member, and is stopped already; who is none of ours.
  void add_member(const Member& member, const ProcessStat* stat);
  void add_stranger(pid_t pid) { passed_.insert(pid); }

  // Until walks through all processes meet no newcomer; false when that does not happen in time.
  bool run(std::int64_t deadline_ms);
  const std::vector<Member>& stopped() const noexcept { return stopped_; }
  // Children of the caller that were reaped.
  const std::vector<pid_t>& reaped() const noexcept { return reaped_; }

 private:
  bool belongs(const ProcessStat& p) const;
  bool meet(pid_t pid);
  void stop_group(const ProcessStat& p);

  bool is_below_root(ProcessStat p) const;

  const Procfs& proc_;
  pid_t root_;
  const TreeIdentity& tree_;
  bool all_;
  std::unordered_set<pid_t> members_;
  std::unordered_set<pid_t> sessions_;
  std::unordered_set<pid_t> passed_;
  std::vector<Member> stopped_;  // by the pursuit
  std::vector<pid_t> reaped_;
};

}  // namespace sandforge::posix
