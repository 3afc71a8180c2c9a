// How a command is ended, with everything that it started.
#include <unistd.h>
#include <algorithm>
#include <csignal>

#include "process.hpp"
#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

constexpr std::int64_t kFirstStepMs = 5;
constexpr std::int64_t kLastStepMs = 100;

}  // namespace

posix::TreeIdentity Process::tree() const {
  posix::TreeIdentity tree;
  tree.leader = session_;
  tree.leader_alive = !exited_;
  tree.mark_name = kMarkName;
  tree.mark_value = supervisor_.mark_of(id_);
  tree.known = seen_;
  return tree;
}

bool Process::signal(int number, wire::SignalScope scope) {
  if (scope == wire::SignalScope::tree) {
    const auto members = supervisor_.members(*this);
    for (const posix::Member& m : members)
      posix::signal_member(supervisor_.proc(), m, number);
    return !members.empty();
  }
  if (exited_) return false;
  return ::kill(scope == wire::SignalScope::group ? -pid_ : pid_, number) == 0;
}

void Process::terminate(const posix::Member& member) {
  posix::signal_member(supervisor_.proc(), member, SIGTERM);
  // A stopped process does not see it otherwise.
  posix::signal_member(supervisor_.proc(), member, SIGCONT);
}

void Process::terminate_tree() {
  // All are found before the first is signalled: once a parent has ended, descent tells nothing.
  seen_ = supervisor_.members(*this);
  for (const posix::Member& m : seen_)
    terminate(m);
  // Where there is no /proc.
  if (seen_.empty() && !exited_) ::kill(-pid_, SIGTERM);
}

// Who was started while the signals were sent out, and has lost its parent to them, would keep
// everybody waiting for the grace. Told at each look: a shell loses a signal that comes between its
// fork and its exec. What still has a parent may be how that one cleans up.
void Process::terminate_orphans() {
  for (const posix::Member& m : supervisor_.members(*this)) {
    const bool told = std::any_of(seen_.begin(), seen_.end(), [&](const posix::Member& s) {
      return s.pid == m.pid && s.start_time == m.start_time;
    });
    if (!told && m.parent == ::getpid()) terminate(m);
  }
}

void Process::end_tree(std::int64_t grace_ms) {
  EventLoop& loop = supervisor_.loop();
  const std::int64_t kill_at = loop.now() + std::max<std::int64_t>(grace_ms, 0);
  if (ending_) {
    kill_at_ = std::min(kill_at_, kill_at);
    if (!killing_ && kill_at_ <= loop.now()) tree_step();
    return;
  }
  ending_ = true;
  quiet_ = {};
  kill_at_ = kill_at;
  step_ms_ = kFirstStepMs;
  if (grace_ms > 0) {
    terminate_tree();
    loop.cancel(tree_timer_);
    tree_timer_ = loop.at(loop.now() + step_ms_, [this] { tree_step(); });
  } else {
    killing_ = true;
    tree_step();
  }
}

void Process::look_at_tree() {
  if (!ending_ || std::exchange(tree_step_queued_, true)) return;
  supervisor_.loop().later([this] {
    tree_step_queued_ = false;
    if (ending_) tree_step();
  });
}

void Process::tree_step() {
  EventLoop& loop = supervisor_.loop();
  loop.cancel(tree_timer_);
  if (exited_ && supervisor_.childless()) return tree_ended();
  const bool nobody = exited_ && !background() && supervisor_.members(*this).empty();
  if (quiet_.enough(nobody, supervisor_.looks())) return tree_ended();
  if (nobody) step_ms_ = kFirstStepMs;
  if (!killing_ && loop.now() >= kill_at_) {
    killing_ = true;
    step_ms_ = kFirstStepMs;
  }
  if (!killing_ && !nobody) terminate_orphans();
  // Again and again: what was forked meanwhile is found by the next look.
  if (killing_ && !nobody) supervisor_.kill_soon(*this);
  const std::int64_t next = loop.now() + step_ms_;
  step_ms_ = std::min(step_ms_ * 2, kLastStepMs);
  tree_timer_ = loop.at(killing_ ? next : std::min(next, kill_at_), [this] { tree_step(); });
}

void Process::tree_ended() {
  ending_ = false;
  killing_ = false;
  seen_.clear();
  supervisor_.tree_ended(*this);
}

}  // namespace sandforge::guest
