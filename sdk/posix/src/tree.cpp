#include "sandforge/posix/tree.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <unordered_map>
#include <unordered_set>

#include "sandforge/posix/system.hpp"

namespace sandforge::posix {
namespace {

constexpr int kDepthLimit = 1024;

using Index = std::unordered_map<pid_t, const ProcessStat*>;

Index index_of(const std::vector<ProcessStat>& processes) {
  Index index;
  index.reserve(processes.size());
  for (const ProcessStat& p : processes)
    index.emplace(p.pid, &p);
  return index;
}

bool same(const std::vector<Member>& members, const ProcessStat& p) {
  return std::any_of(members.begin(), members.end(), [&](const Member& m) {
    return m.pid == p.pid && m.start_time == p.start_time;
  });
}

bool marked(const Procfs& proc, const TreeIdentity& tree, pid_t pid) {
  std::string value;
  if (tree.mark_name.empty() || !proc.environment(pid, tree.mark_name, value)) return false;
  return tree.mark_is_prefix ? value.compare(0, tree.mark_value.size(), tree.mark_value) == 0
                             : value == tree.mark_value;
}

// Answers for every process of one snapshot, each computed once.
class Classifier {
 public:
  Classifier(const Procfs& proc, const Index& index, pid_t root, const TreeIdentity& tree,
             const std::vector<pid_t>& foreign)
      : proc_(proc),
        index_(index),
        root_(root),
        tree_(tree),
        foreign_(foreign.begin(), foreign.end()) {}

  bool member(const ProcessStat& p) {
    // Up to the root or to something already decided, then back down.
    std::vector<const ProcessStat*> path;
    Verdict above = Verdict::undecided;
    const ProcessStat* at = &p;
    for (std::size_t depth = 0; at && at->pid != root_ && depth <= index_.size(); ++depth) {
      const auto known = verdict_.find(at->pid);
      if (known != verdict_.end()) {
        above = known->second;
        break;
      }
      path.push_back(at);
      const auto parent = index_.find(at->parent);
      at = parent == index_.end() ? nullptr : parent->second;
    }
    // Not below us: nothing that we started.
    if (!at && !tree_.anywhere) above = Verdict::foreign;
    for (auto one = path.rbegin(); one != path.rend(); ++one) {
      if (above == Verdict::undecided) above = judge(**one);
      verdict_[(*one)->pid] = above;
    }
    return above == Verdict::member;
  }

 private:
  enum class Verdict { undecided, member, foreign };

  Verdict judge(const ProcessStat& p) const {
    if (foreign_.count(p.pid) != 0) return Verdict::foreign;
    if (tree_.leader_alive && p.pid == tree_.leader) return Verdict::member;
    if (tree_.leader > 0 && p.session == tree_.leader) return Verdict::member;
    if (same(tree_.known, p)) return Verdict::member;
    return p.state != 'Z' && marked(proc_, tree_, p.pid) ? Verdict::member : Verdict::undecided;
  }

  const Procfs& proc_;
  const Index& index_;
  pid_t root_;
  const TreeIdentity& tree_;
  std::unordered_set<pid_t> foreign_;
  std::unordered_map<pid_t, Verdict> verdict_;
};

}  // namespace

bool become_subreaper() noexcept {
  return ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

std::vector<Member> find_members(const Procfs& proc, const std::vector<ProcessStat>& processes,
                                 pid_t root, const TreeIdentity& tree,
                                 const std::vector<pid_t>& foreign) {
  const Index index = index_of(processes);
  Classifier classifier(proc, index, root, tree, foreign);
  std::vector<Member> out;
  for (const ProcessStat& p : processes)
    if (p.pid != root && classifier.member(p) && p.state != 'Z')
      out.push_back({p.pid, p.start_time, p.parent});
  return out;
}

std::vector<Member> find_descendants(const std::vector<ProcessStat>& processes, pid_t root) {
  const Index index = index_of(processes);
  std::vector<Member> out;
  for (const ProcessStat& p : processes) {
    if (p.pid == root || p.state == 'Z') continue;
    const ProcessStat* at = &p;
    for (std::size_t depth = 0; at && at->pid != root && depth <= index.size(); ++depth) {
      const auto parent = index.find(at->parent);
      at = parent == index.end() ? nullptr : parent->second;
    }
    if (at && at->pid == root) out.push_back({p.pid, p.start_time, p.parent});
  }
  return out;
}

std::vector<Member> find_marked(const Procfs& proc, const std::vector<ProcessStat>& processes,
                                const TreeIdentity& tree) {
  std::vector<Member> found;
  std::unordered_set<pid_t> known = {::getpid()};
  const auto add = [&](const Member& m) {
    if (known.insert(m.pid).second) found.push_back(m);
  };
  for (const ProcessStat& p : processes) {
    if (p.state == 'Z' || !marked(proc, tree, p.pid)) continue;
    add({p.pid, p.start_time, p.parent});
    for (const Member& below : find_descendants(processes, p.pid))
      add(below);
  }
  return found;
}

Pursuit::Pursuit(const Procfs& proc, pid_t root, const TreeIdentity& tree, bool all)
    : proc_(proc), root_(root), tree_(tree), all_(all) {
  if (tree.leader > 0) sessions_.insert(tree.leader);
  passed_.insert(root);
}

void Pursuit::add_member(const Member& member, const ProcessStat* stat) {
  members_.insert(member.pid);
  // Never that of the caller, whoever is in it.
  if (!stat || stat->session == ::getsid(0)) return;
  // A session below the leader was made by a member, so all who are in it are members.
  sessions_.insert(stat->session);
  stop_group(*stat);
}

// One call stops all of a group, and the kernel lets none of them finish a fork meanwhile.
void Pursuit::stop_group(const ProcessStat& p) {
  ProcessStat now;
  // It has been stopped, so it stays in its group, and the number is not given to another.
  if (p.group > 1 && proc_.stat(p.pid, now) && now.start_time == p.start_time &&
      now.group == p.group && now.state != 'Z')
    ::kill(-p.group, SIGSTOP);
}

bool Pursuit::belongs(const ProcessStat& p) const {
  if (members_.count(p.parent) != 0 || sessions_.count(p.session) != 0) return true;
  return (all_ && is_below_root(p)) || marked(proc_, tree_, p.pid);
}

bool Pursuit::is_below_root(ProcessStat p) const {
  // Parents that are gone have left their children to the root, or to somebody who is looked at in
  // the next walk.
  for (int depth = 0; depth < kDepthLimit; ++depth) {
    if (p.parent == root_) return true;
    if (p.parent <= 1 || !proc_.stat(p.parent, p)) return false;
  }
  return false;
}

bool Pursuit::meet(pid_t pid) {
  if (passed_.count(pid) != 0 || members_.count(pid) != 0) return false;
  const Fd pidfd = open_pidfd(pid);
  ProcessStat p;
  if (!proc_.stat(pid, p)) return false;
  if (p.state == 'Z') {
    // Else thousands of them would be in the way of the next walk.
    const bool gone = p.parent == root_ && ::waitpid(pid, nullptr, WNOHANG) == pid;
    if (gone)
      reaped_.push_back(pid);
    else
      passed_.insert(pid);
    return false;
  }
  if (!belongs(p)) return false;
  const bool sent = pidfd ? signal_pidfd(pidfd.get(), SIGSTOP) : false;
  if (!sent && !(pidfd && !call_is_absent(errno))) ::kill(pid, SIGSTOP);
  const Member member{p.pid, p.start_time, p.parent};
  stopped_.push_back(member);
  add_member(member, &p);
  return true;
}

bool Pursuit::run(std::int64_t deadline_ms) {
  // A child has a higher number than its parent and is met later in the same walk, except where the
  // numbers begin anew: it takes several walks in a row to know that nobody was missed.
  QuietLooks quiet;
  for (std::uint64_t walk = 1;; ++walk) {
    bool met = false;
    if (!proc_.each_pid([&](pid_t pid) { met |= meet(pid); })) return false;
    if (quiet.enough(!met, walk)) return true;
    if (met && monotonic_ms() >= deadline_ms) return false;
  }
}

bool QuietLooks::enough(bool saw_nobody, std::uint64_t look) noexcept {
  if (!saw_nobody)
    quiet_ = 0;
  else if (quiet_ == 0 || look != last_)
    ++quiet_;
  last_ = look;
  return quiet_ >= kEnough;
}

bool is_childless() noexcept {
  siginfo_t info;
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

bool signal_member(const Procfs& proc, const Member& member, int signal) noexcept {
  // The pidfd first, the check second: a pid that is checked first may change hands in between.
  const Fd pidfd = open_pidfd(member.pid);
  ProcessStat now;
  if (proc && (!proc.stat(member.pid, now) || now.start_time != member.start_time)) return false;
  if (pidfd && signal_pidfd(pidfd.get(), signal)) return true;
  if (pidfd && !call_is_absent(errno)) return false;
  return ::kill(member.pid, signal) == 0;
}

}  // namespace sandforge::posix
