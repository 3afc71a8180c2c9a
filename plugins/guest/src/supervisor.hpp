// Everything that the guest owns: processes, hosts, the stored environment, and the rules for when
// it ends.
#pragma once

#include <signal.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "connection.hpp"
#include "loop.hpp"
#include "options.hpp"
#include "process.hpp"
#include "sandforge/posix/cgroup.hpp"
#include "sandforge/posix/log.hpp"
#include "sandforge/posix/procfs.hpp"
#include "sandforge/posix/tree.hpp"

namespace sandforge::guest {

inline constexpr const char kMarkName[] = "SANDFORGE_GUEST_PROCESS";

class Supervisor {
 public:
  // `subreaper`: orphans of commands become our children.
  Supervisor(EventLoop& loop, const ServeOptions& options, bool subreaper);
  ~Supervisor();

  EventLoop& loop() noexcept { return loop_; }
  const ServeOptions& options() const noexcept { return options_; }
  posix::LogBudget& log_budget() noexcept { return budget_; }
  const posix::Procfs& proc() const noexcept { return proc_; }
  const std::string& instance() const noexcept { return instance_; }
  // A control group of our own for all that is started from now on, where one can be made.
  void make_group();
  // Starts the options' main command, where there is one. False: it cannot be started.
  bool start_main(std::string& why);
  const std::string& group_path() const noexcept { return group_.path(); }
  std::uint64_t features() const;
  const std::map<std::string, std::string>& environment() const noexcept { return environment_; }
  // The soft limit of open files that the guest was started with.
  int open_files_limit() const noexcept { return open_files_limit_; }
  // For spawns: we change none after our start.
  const sigset_t& changed_signals() const noexcept { return changed_signals_; }
  // When memory runs out, a command goes before us.
  void prefer_for_oom(pid_t pid) const;
  int null_device() const noexcept { return null_.get(); }
  std::string mark_of(std::uint64_t process) const;

  // Hosts.
  bool add_connection(posix::Fd socket);
  void connection_closed(Connection& connection);

  // Requests; each answers on its channel.
  void spawn(Attachment& attachment, wire::SpawnRequest request);
  void attach(Attachment& attachment, const wire::AttachRequest& request);
  void kill(Connection& connection, std::uint64_t channel, Process& process, std::int64_t grace_ms);
  void release(Connection& connection, std::uint64_t channel, Process& process);
  void list(Connection& connection, std::uint64_t channel);
  void info(Connection& connection, std::uint64_t channel);
  // What is wrong, when an entry is malformed or all of them would be too large; else empty.
  std::string set_environment(const wire::EnvSetRequest& request);
  wire::EnvReply get_environment() const;
  void stop_all(Connection* connection, std::uint64_t channel, std::int64_t grace_ms, bool exit);

  Process* find(std::uint64_t id) const;
  // Called by a process.
  void process_over(Process& process);
  void tree_ended(Process& process);

  // Children ended: reaps them all.
  void reap();
  // The living members of a tree. Looks at /proc at most once in a few milliseconds.
  std::vector<posix::Member> members(const Process& process);
  std::vector<posix::Member> descendants();
  // The looks at /proc so far.
  std::uint64_t looks() const noexcept { return looks_; }
  // Nothing runs below us, as the kernel knows it; false also where it cannot know.
  bool childless() const noexcept { return subreaper_ && posix::is_childless(); }
  // Kills its tree at the end of the turn, together with all others that are to be killed.
  void kill_soon(Process& process);

  // Ends every command that is not to outlive us, then the loop.
  void shut_down();
  // What was removed from use during this turn and may still be referred to.
  void bury(std::shared_ptr<void> dead);
  void clear_buried();
  void check_idle();
  // A host asked for something, or got the last of it.
  void touch() noexcept { active_ms_ = loop_.now(); }

 private:
  struct Stray {
    std::uint64_t start_time;
    std::uint64_t owner;  // 0: unknown
  };
  struct Waiter {
    Connection* connection;
    std::uint64_t channel;
    std::uint64_t value;
  };

  const std::vector<posix::ProcessStat>& snapshot();
  void find_strays();
  std::uint64_t owner_of(const posix::ProcessStat& stray) const;
  void stray_reaped(pid_t pid);
  void remember_released(const std::string& request_id);
  void forget(Process& process);
  void forget_early();
  void evict();
  posix::TreeIdentity whole_tree() const;
  void stop_step();
  bool nobody_left();
  bool stop_drained();
  void terminate_others(const std::vector<posix::Member>& all);
  void kill_pass();
  bool freeze_all(int rounds);
  void kill_frozen();
  bool slips(std::uint64_t id, const Process* process) const;
  void pursue(std::uint64_t id);
  bool freeze(std::uint64_t id, const std::vector<posix::Member>& members);
  void answer(std::vector<Waiter>& waiters);
  bool in_use() const;
  void check_active();

  EventLoop& loop_;
  const ServeOptions& options_;
  const bool subreaper_;
  posix::LogBudget budget_;
  posix::Procfs proc_;
  posix::ControlGroup group_;
  std::string instance_;
  int open_files_limit_ = 0;
  sigset_t changed_signals_;
  int oom_score_ = 0;  // of commands
  posix::Fd null_;     // standard input of whoever asked for none
  std::int64_t started_ms_ = 0;

  std::map<std::uint64_t, std::unique_ptr<Process>> processes_;
  std::uint64_t next_process_ = 1;
  std::unordered_map<std::string, std::uint64_t> by_request_;
  std::unordered_map<pid_t, Process*> leaders_;  // not reaped
  std::unordered_map<pid_t, std::uint64_t> sessions_;
  std::unordered_map<pid_t, Stray> strays_;
  std::unordered_set<std::string> released_;
  std::unordered_set<std::uint64_t> released_early_;  // processes whose tree is still being ended
  std::deque<std::string> released_order_;
  std::deque<std::uint64_t> over_order_;
  std::map<std::string, std::string> environment_;

  std::vector<std::unique_ptr<Connection>> connections_;
  std::map<std::uint64_t, std::vector<Waiter>> kill_waiters_;

  // By process, 0 for all of them: whom the next kill_pass ends, and whom it has stopped so far.
  std::map<std::uint64_t, std::vector<posix::Member>> to_kill_;
  std::vector<std::uint64_t> growing_;  // of these, trees with new members in the last look
  std::vector<posix::ProcessStat> snapshot_;
  std::int64_t snapshot_at_ = -1000;
  std::uint64_t looks_ = 0;

  bool stopping_ = false;
  bool stop_killing_ = false;
  bool exit_after_stop_ = false;
  int exit_code_ = 0;
  pid_t main_ = 0;        // of the main command, while it runs
  bool leaving_ = false;  // exits once no tree is being ended
  std::int64_t stop_kill_at_ = 0;
  posix::QuietLooks stop_quiet_;
  std::int64_t stop_empty_at_ = 0;  // since when nothing runs; 0: something does
  std::vector<Waiter> stop_waiters_;
  EventLoop::Timer stop_timer_{};
  EventLoop::Timer unused_timer_{};
  EventLoop::Timer idle_timer_{};
  std::int64_t active_ms_ = 0;  // when it was in use last
  std::vector<std::shared_ptr<void>> buried_;
};

}  // namespace sandforge::guest
