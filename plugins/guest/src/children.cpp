// Processes below the guest: whose they are, and what becomes of them.
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "sandforge/posix/system.hpp"
#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

constexpr std::int64_t kSnapshotMs = 3;

}  // namespace

void Supervisor::reap() {
  std::vector<std::pair<Process*, int>> ended;
  bool childless = false;
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    childless = pid < 0;
    if (pid <= 0) break;
    if (pid == main_) {
      main_ = 0;
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      loop_.later([this] { stop_all(nullptr, 0, options_.grace_ms, true); });
      continue;
    }
    const auto leader = leaders_.find(pid);
    if (leader == leaders_.end()) {
      stray_reaped(pid);
      continue;
    }
    if (!leader->second->request().detach) touch();
    ended.emplace_back(leader->second, status);
    leaders_.erase(leader);
  }
  // What a leader leaves behind is ours by now.
  if (!childless) find_strays();
  for (const auto& [process, status] : ended)
    process->leader_exited(status);
  if (stopping_) loop_.later([this] { stop_step(); });
  check_idle();
}

void Supervisor::stray_reaped(pid_t pid) {
  const auto stray = strays_.find(pid);
  if (stray == strays_.end()) return;
  Process* owner = find(stray->second.owner);
  strays_.erase(stray);
  if (!owner) return;
  owner->stray_gone();
  owner->look_at_tree();
}

void Supervisor::find_strays() {
  std::vector<pid_t> children;
  if (!proc_.own_children(children)) return;
  if (children.size() == leaders_.size() + strays_.size()) return;
  for (const pid_t pid : children) {
    if (leaders_.count(pid) != 0 || strays_.count(pid) != 0) continue;
    posix::ProcessStat stat;
    if (!proc_.stat(pid, stat) || stat.state == 'Z') continue;
    const std::uint64_t owner = owner_of(stat);
    strays_.emplace(pid, Stray{stat.start_time, owner});
    if (Process* process = find(owner)) process->stray_found();
  }
}

std::uint64_t Supervisor::owner_of(const posix::ProcessStat& stray) const {
  const auto session = sessions_.find(stray.session);
  if (session != sessions_.end()) return session->second;
  std::string mark;
  if (!proc_.environment(stray.pid, kMarkName, mark)) return 0;
  const std::string prefix = instance_ + ".";
  if (mark.compare(0, prefix.size(), prefix) != 0) return 0;
  const std::uint64_t id = std::strtoull(mark.c_str() + prefix.size(), nullptr, 10);
  return find(id) ? id : 0;
}

const std::vector<posix::ProcessStat>& Supervisor::snapshot() {
  const std::int64_t now = posix::monotonic_ms();
  if (now - snapshot_at_ >= kSnapshotMs) {
    snapshot_ = proc_.processes();
    snapshot_at_ = posix::monotonic_ms();
    ++looks_;
  }
  return snapshot_;
}

std::vector<posix::Member> Supervisor::members(const Process& process) {
  posix::TreeIdentity tree = process.tree();
  tree.anywhere = !subreaper_;
  std::vector<pid_t> foreign;
  for (const auto& [pid, leader] : leaders_)
    if (leader != &process) foreign.push_back(pid);
  for (const auto& [pid, stray] : strays_) {
    if (stray.owner == process.id())
      tree.known.push_back({pid, stray.start_time, 0});
    else if (stray.owner != 0)
      foreign.push_back(pid);
  }
  return posix::find_members(proc_, snapshot(), ::getpid(), tree, foreign);
}

// Orphans may be somebody else's children: they are known by the mark alone.
posix::TreeIdentity Supervisor::whole_tree() const {
  posix::TreeIdentity tree;
  if (subreaper_) return tree;
  tree.mark_name = kMarkName;
  tree.mark_value = instance_ + ".";
  tree.mark_is_prefix = true;
  return tree;
}

std::vector<posix::Member> Supervisor::descendants() {
  std::vector<posix::Member> out = posix::find_descendants(snapshot(), ::getpid());
  if (subreaper_) return out;
  for (const posix::Member& m : posix::find_marked(proc_, snapshot(), whole_tree())) {
    const bool known =
        std::any_of(out.begin(), out.end(), [&](const posix::Member& d) { return d.pid == m.pid; });
    if (!known) out.push_back(m);
  }
  return out;
}

}  // namespace sandforge::guest
