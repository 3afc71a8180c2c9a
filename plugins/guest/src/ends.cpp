// How commands are ended by force, and how everything is.
#include <unistd.h>
#include <algorithm>
#include <csignal>

#include "sandforge/posix/system.hpp"
#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

constexpr std::int64_t kNoSnapshot = -1000;
constexpr int kFreezeRounds = 3;
constexpr std::int64_t kGroupFreezeMs = 500;
constexpr std::int64_t kPursuitMs = 2000;
constexpr std::int64_t kDrainMs = 250;  // for hosts that withhold credit
constexpr std::size_t kStopWaiterLimit = 4096;

}  // namespace

void Supervisor::kill_soon(Process& process) {
  if (to_kill_.empty()) loop_.later([this] { kill_pass(); });
  to_kill_[process.id()];
}

// Stops those that were not known yet. False when there were none.
bool Supervisor::freeze(std::uint64_t id, const std::vector<posix::Member>& members) {
  std::vector<posix::Member>& frozen = to_kill_[id];
  bool found = false;
  for (const posix::Member& m : members) {
    const bool known = std::any_of(frozen.begin(), frozen.end(), [&](const posix::Member& f) {
      return f.pid == m.pid && f.start_time == m.start_time;
    });
    if (known) continue;
    frozen.push_back(m);
    if (Process* process = find(id)) process->remember(m);
    posix::signal_member(proc_, m, SIGSTOP);
    found = true;
  }
  return found;
}

// Everybody is stopped before anybody is killed: who is stopped forks no more, and its children
// stay below it, where they are found by the next look. False when there are still new ones.
bool Supervisor::freeze_all(int rounds) {
  bool found = true;
  for (int round = 0; found && round < rounds; ++round) {
    found = false;
    snapshot_at_ = kNoSnapshot;
    growing_.clear();
    for (auto& [id, frozen] : to_kill_) {
      const Process* process = find(id);
      const bool more =
          (id == 0 ? freeze(id, descendants()) : process && freeze(id, members(*process))) ||
          slips(id, process);
      if (more) growing_.push_back(id);
      found |= more;
    }
  }
  return !found;
}

void Supervisor::kill_frozen() {
  for (const auto& [id, frozen] : to_kill_) {
    for (const posix::Member& m : frozen)
      posix::signal_member(proc_, m, SIGKILL);
    // Where there is no /proc.
    const Process* process = find(id);
    if (frozen.empty() && process && process->running()) ::kill(-process->pid(), SIGKILL);
  }
}

// For a tree that starts processes faster than it is looked at.
void Supervisor::pursue(std::uint64_t id) {
  const Process* process = find(id);
  const posix::TreeIdentity tree = process ? process->tree() : whole_tree();
  posix::Pursuit pursuit(proc_, ::getpid(), tree, id == 0);
  std::unordered_set<pid_t> members;
  for (const posix::Member& m : to_kill_[id])
    members.insert(m.pid);
  for (const posix::ProcessStat& p : snapshot_) {
    if (members.count(p.pid) != 0)
      pursuit.add_member({p.pid, p.start_time, p.parent}, &p);
    else
      pursuit.add_stranger(p.pid);
  }
  // Whose end is told by reap().
  for (const auto& [pid, leader] : leaders_)
    pursuit.add_stranger(pid);
  pursuit.run(posix::monotonic_ms() + kPursuitMs);
  freeze(id, pursuit.stopped());
  for (const pid_t pid : pursuit.reaped())
    stray_reaped(pid);
}

// Something of it runs, and no look has met it.
bool Supervisor::slips(std::uint64_t id, const Process* process) const {
  if (!to_kill_.at(id).empty()) return false;
  return process ? process->background() : leaders_.empty() && !strays_.empty();
}

void Supervisor::kill_pass() {
  if (!freeze_all(kFreezeRounds)) {
    // Where the kernel stops them all in one moment, the next look sees everybody.
    if (group_ && group_.freeze_others(kGroupFreezeMs)) {
      freeze_all(1);
      kill_frozen();
      group_.thaw();
    } else {
      const std::vector<std::uint64_t> growing = growing_;
      for (const std::uint64_t id : growing)
        pursue(id);
    }
  }
  kill_frozen();
  to_kill_.clear();
  snapshot_at_ = kNoSnapshot;
}

void Supervisor::stop_all(Connection* connection, std::uint64_t channel, std::int64_t grace_ms,
                          bool exit) {
  exit_after_stop_ |= exit;
  if (stop_waiters_.size() >= kStopWaiterLimit && connection) {
    connection->send_error(channel, wire::ErrorCode::limit, "too many wait for the end already");
    return;
  }
  const auto all = descendants();
  if (connection) stop_waiters_.push_back({connection, channel, all.size()});
  const std::int64_t kill_at = loop_.now() + grace_ms;
  if (!stopping_) {
    stopping_ = true;
    stop_quiet_ = {};
    stop_kill_at_ = kill_at;
    stop_killing_ = grace_ms <= 0;
    for (const auto& [id, process] : processes_)
      if (process->running() || process->background()) process->end_tree(grace_ms);
    if (!stop_killing_) terminate_others(all);
  }
  stop_kill_at_ = std::min(stop_kill_at_, kill_at);
  stop_step();
}

// Strays of nobody. Not members of a command, which have their signal already: a second one means
// to many programs that they must not take their time.
void Supervisor::terminate_others(const std::vector<posix::Member>& all) {
  std::unordered_set<pid_t> told;
  for (const auto& [id, process] : processes_)
    for (const posix::Member& m : process->seen())
      told.insert(m.pid);
  for (const posix::Member& m : all)
    if (told.count(m.pid) == 0) posix::signal_member(proc_, m, SIGTERM);
}

// Nobody is left to write, so what lies in the pipes is all there is: the hosts get it, and the
// ends of their commands, before the answer and before we go. False: looked at again in a moment.
bool Supervisor::stop_drained() {
  if (stop_empty_at_ == 0) stop_empty_at_ = std::max<std::int64_t>(loop_.now(), 1);
  const bool over = std::all_of(processes_.begin(), processes_.end(),
                                [](const auto& entry) { return entry.second->over(); });
  if (!over && loop_.now() - stop_empty_at_ < kDrainMs) {
    stop_timer_ = loop_.at(loop_.now() + 1, [this] {
      stop_timer_ = {};
      stop_step();
    });
    return false;
  }
  stop_empty_at_ = 0;
  return true;
}

bool Supervisor::nobody_left() {
  if (childless()) return true;
  snapshot_at_ = kNoSnapshot;
  const bool nobody = leaders_.empty() && strays_.empty() && descendants().empty();
  return stop_quiet_.enough(nobody, looks_);
}

void Supervisor::stop_step() {
  if (!stopping_) return;
  loop_.cancel(stop_timer_);
  if (loop_.now() >= stop_kill_at_) stop_killing_ = true;
  if (nobody_left()) {
    if (!stop_drained()) return;
    stopping_ = false;
    answer(stop_waiters_);
    if (exit_after_stop_) loop_.later([this] { loop_.stop(exit_code_); });
    return;
  }
  if (stop_killing_) {
    // Then one by one, for who left the group.
    if (group_) group_.kill_others();
    to_kill_[0];
    kill_pass();
  }
  const std::int64_t next = loop_.now() + (stop_killing_ ? 5 : 20);
  stop_timer_ = loop_.at(stop_killing_ ? next : std::min(next, stop_kill_at_), [this] {
    stop_timer_ = {};
    stop_step();
  });
}

void Supervisor::shut_down() {
  leaving_ = true;
  bool waiting = false;
  for (const auto& [id, process] : processes_) {
    if (process->request().detach || (!process->running() && !process->background())) continue;
    if (!process->ending())
      process->end_tree(static_cast<std::int64_t>(
          std::min<std::uint64_t>(process->request().grace_ms, 3600 * 1000)));
    waiting |= process->ending();
  }
  if (!waiting) loop_.stop(exit_code_);
}

bool Supervisor::in_use() const {
  const bool foreground = std::any_of(leaders_.begin(), leaders_.end(), [](const auto& entry) {
    return !entry.second->request().detach;
  });
  return foreground || std::any_of(connections_.begin(), connections_.end(),
                                   [](const auto& host) { return host->has_channels(); });
}

// A host that is connected and asks for nothing keeps nobody awake. The timer looks when the time
// may be over, so that requests cost no timer.
void Supervisor::check_active() {
  idle_timer_ = loop_.at(active_ms_ + options_.idle_ms, [this] {
    idle_timer_ = {};
    if (leaving_) return;
    // A stop of everything may leave the guest where it is.
    if (stopping_ || in_use()) touch();
    if (loop_.now() - active_ms_ < options_.idle_ms) return check_active();
    stop_all(nullptr, 0, options_.grace_ms, true);
  });
}

void Supervisor::check_idle() {
  const bool unused = options_.unused_ms > 0 && connections_.empty() && !stopping_ && !leaving_ &&
                      leaders_.empty() && strays_.empty();
  loop_.cancel(unused_timer_);
  // Who was missed when its parent ended is no stray that we know of.
  if (!unused || (subreaper_ && !posix::is_childless())) return;
  unused_timer_ = loop_.at(loop_.now() + options_.unused_ms, [this] {
    unused_timer_ = {};
    stop_all(nullptr, 0, options_.grace_ms, true);
  });
}

}  // namespace sandforge::guest
