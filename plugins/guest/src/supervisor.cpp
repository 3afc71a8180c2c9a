#include "supervisor.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "sandforge/posix/spawn.hpp"
#include "sandforge/posix/system.hpp"

namespace sandforge::guest {
namespace {

constexpr std::size_t kOverLimit = 1024;       // ended processes that are remembered
constexpr std::size_t kKnownLimit = 4096;      // all processes
constexpr std::size_t kReleasedLimit = 16384;  // request ids of those that were released
constexpr std::size_t kConnectionLimit = 64;
constexpr std::size_t kEnvironmentLimit = 2 * 1024 * 1024;
constexpr std::int64_t kSnapshotMs = 3;
constexpr std::int64_t kNoSnapshot = -1000;
constexpr int kFreezeRounds = 8;
constexpr int kOomDistance = 300;

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0'), out;
  posix::random_bytes(raw.data(), raw.size());
  for (const char c : raw) {
    out += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    out += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

// As many descriptors as we may have; commands get back what we were started with.
int raise_open_files() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return before > INT32_MAX ? 0 : static_cast<int>(before);
}

}  // namespace

Supervisor::Supervisor(EventLoop& loop, const ServeOptions& options)
    : loop_(loop),
      options_(options),
      instance_(random_hex(16)),
      open_files_limit_(raise_open_files()),
      changed_signals_(posix::changed_signals()),
      null_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
      started_ms_(posix::monotonic_ms()) {
  budget_.limit = options.log_total_bytes;
  std::string own;
  if (posix::read_file("/proc/self/oom_score_adj", own, 16))
    oom_score_ = std::min(1000, std::atoi(own.c_str()) + kOomDistance);
  check_idle();
}

Supervisor::~Supervisor() = default;

std::string Supervisor::mark_of(std::uint64_t process) const {
  return instance_ + "." + std::to_string(process);
}

void Supervisor::prefer_for_oom(pid_t pid) const {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/oom_score_adj", static_cast<int>(pid));
  // Best effort: a program of another user may refuse it.
  posix::write_file_at(AT_FDCWD, path, std::to_string(oom_score_).c_str());
}

std::uint64_t Supervisor::features() const {
  std::uint64_t out = wire::kFeatureSubreaper | wire::kFeaturePty;
  if (::geteuid() == 0) out |= wire::kFeatureUser;
  if (posix::open_pidfd(::getpid())) out |= wire::kFeaturePidfd;
  return out;
}

void Supervisor::bury(std::shared_ptr<void> dead) {
  if (buried_.empty()) loop_.later([this] { buried_.clear(); });
  buried_.push_back(std::move(dead));
}

// Hosts -----------------------------------------------------------------------------------------

bool Supervisor::add_connection(posix::Fd socket) {
  if (connections_.size() >= kConnectionLimit) return false;
  auto connection = std::make_unique<Connection>(*this, std::move(socket));
  if (!connection->start()) return false;
  connections_.push_back(std::move(connection));
  check_idle();
  return true;
}

void Supervisor::connection_closed(Connection& connection) {
  const auto of_it = [&](const Waiter& w) { return w.connection == &connection; };
  for (auto& [id, waiters] : kill_waiters_)
    waiters.erase(std::remove_if(waiters.begin(), waiters.end(), of_it), waiters.end());
  stop_waiters_.erase(std::remove_if(stop_waiters_.begin(), stop_waiters_.end(), of_it),
                      stop_waiters_.end());
  for (Attachment* a : connection.attachments()) {
    Process* process = a->process;
    if (process) process->detach(*a);
    if (process && a->owns_stdin && !process->request().detach && !options_.keep &&
        process->running())
      process->end_tree(static_cast<std::int64_t>(
          std::min<std::uint64_t>(process->request().grace_ms, 3600 * 1000)));
    connection.drop(*a);
  }
  const auto found =
      std::find_if(connections_.begin(), connections_.end(),
                   [&](const std::unique_ptr<Connection>& c) { return c.get() == &connection; });
  if (found != connections_.end()) {
    bury(std::shared_ptr<Connection>(std::move(*found)));
    connections_.erase(found);
  }
  if (options_.fd >= 0 && !options_.keep) shut_down();
  check_idle();
}

// Requests --------------------------------------------------------------------------------------

Process* Supervisor::find(std::uint64_t id) const {
  const auto found = processes_.find(id);
  return found == processes_.end() ? nullptr : found->second.get();
}

void Supervisor::spawn(Attachment& a, wire::SpawnRequest request) {
  const auto refuse = [&](wire::ErrorCode code, std::string message, int error_number = 0) {
    a.connection->send_error(a.channel, code, std::move(message), error_number);
    a.connection->drop(a);
  };
  const auto known = by_request_.find(request.request_id);
  if (known != by_request_.end()) {
    Process& process = *find(known->second);
    a.owns_stdin = false;
    a.connection->send_message(wire::FrameType::started, a.channel, process.started(true));
    process.attach(a, wire::Cursor());
    return;
  }
  if (released_.count(request.request_id) != 0)
    return refuse(wire::ErrorCode::conflict, "the request id was used before");
  if (stopping_ || leaving_) return refuse(wire::ErrorCode::stopping, "the guest is ending");
  if (processes_.size() >= kKnownLimit)
    return refuse(wire::ErrorCode::limit, "there are too many processes");

  const std::uint64_t id = next_process_++;
  auto process = std::make_unique<Process>(*this, id, std::move(request));
  wire::ErrorInfo error;
  if (!process->start(error)) {
    refuse(error.code, error.message, error.error_number);
    return;
  }
  Process& started = *process;
  // The number is free again, so whoever had it as a session has no member left.
  const auto session = sessions_.find(started.pid());
  if (session != sessions_.end())
    if (Process* old = find(session->second)) old->forget_session();
  sessions_[started.pid()] = id;
  leaders_[started.pid()] = &started;
  by_request_.emplace(started.request().request_id, id);
  processes_.emplace(id, std::move(process));
  std::string payload;
  started.started(false).encode(payload);
  a.connection->send_lazily(wire::FrameType::started, a.channel, payload);
  started.attach(a, wire::Cursor());
  check_idle();
}

void Supervisor::attach(Attachment& a, const wire::AttachRequest& request) {
  std::uint64_t id = static_cast<std::uint64_t>(request.process);
  if (id == 0) {
    const auto found = by_request_.find(request.request_id);
    if (found != by_request_.end()) id = found->second;
  }
  Process* process = find(id);
  if (!process) {
    a.connection->send_error(a.channel, wire::ErrorCode::not_found, "there is no such process");
    a.connection->drop(a);
    return;
  }
  a.connection->send_message(wire::FrameType::started, a.channel, process->started(true));
  if (request.take_stdin) process->take_stdin(a);
  process->attach(a, request.from);
}

void Supervisor::kill(Connection& connection, std::uint64_t channel, Process& process,
                      std::int64_t grace_ms) {
  const bool running = process.running() && !process.ending();
  kill_waiters_[process.id()].push_back({&connection, channel, running ? 1U : 0U});
  process.end_tree(grace_ms);
}

void Supervisor::answer(std::vector<Waiter>& waiters) {
  for (const Waiter& w : std::exchange(waiters, {}))
    w.connection->send(wire::FrameType::done, w.channel, w.value);
}

void Supervisor::tree_ended(Process& process) {
  const auto waiters = kill_waiters_.find(process.id());
  if (waiters != kill_waiters_.end()) {
    answer(waiters->second);
    kill_waiters_.erase(waiters);
  }
  if (leaving_) shut_down();
}

void Supervisor::release(Connection& connection, std::uint64_t channel, Process& process) {
  if (!process.over()) {
    connection.send_error(channel, wire::ErrorCode::conflict, "the process has not ended");
    return;
  }
  remember_released(process.request().request_id);
  forget(process);
  // It comes along with the next command, whose host need not wake up for it.
  connection.send_lazily(wire::FrameType::done, channel, {});
}

void Supervisor::remember_released(const std::string& request_id) {
  if (!released_.insert(request_id).second) return;
  released_order_.push_back(request_id);
  if (released_order_.size() > kReleasedLimit) {
    released_.erase(released_order_.front());
    released_order_.pop_front();
  }
}

void Supervisor::forget(Process& process) {
  const std::uint64_t id = process.id();
  by_request_.erase(process.request().request_id);
  const auto session = sessions_.find(process.session());
  if (session != sessions_.end() && session->second == id) sessions_.erase(session);
  // Its strays stay known as ours, only not as whose.
  for (auto& [pid, stray] : strays_)
    if (stray.owner == id) stray.owner = 0;
  const auto found = processes_.find(id);
  bury(std::shared_ptr<Process>(std::move(found->second)));
  processes_.erase(found);
}

void Supervisor::process_over(Process& process) {
  over_order_.push_back(process.id());
  evict();
  check_idle();
}

void Supervisor::evict() {
  // One pass at most: what is watched, or has processes left, goes to the end of the line.
  for (std::size_t n = over_order_.size(); n > 0 && over_order_.size() > kOverLimit; --n) {
    const std::uint64_t id = over_order_.front();
    over_order_.pop_front();
    Process* process = find(id);
    if (!process) continue;
    if (process->attached() || process->background() || process->ending()) {
      over_order_.push_back(id);
      continue;
    }
    remember_released(process->request().request_id);
    forget(*process);
  }
}

void Supervisor::list(Connection& connection, std::uint64_t channel) {
  wire::ListReply reply;
  for (const auto& [id, process] : processes_)
    reply.processes.push_back(process->info());
  connection.send_message(wire::FrameType::list_reply, channel, reply);
}

void Supervisor::info(Connection& connection, std::uint64_t channel) {
  wire::InfoReply reply;
  reply.uptime_ms = static_cast<std::uint64_t>(posix::monotonic_ms() - started_ms_);
  reply.running = static_cast<std::uint32_t>(leaders_.size());
  reply.known = static_cast<std::uint32_t>(processes_.size());
  reply.connections = static_cast<std::uint32_t>(connections_.size());
  reply.log_bytes = budget_.used;
  reply.spawned = next_process_ - 1;
  connection.send_message(wire::FrameType::info_reply, channel, reply);
}

bool Supervisor::set_environment(const wire::EnvSetRequest& request) {
  std::map<std::string, std::string> next;
  if (!request.replace_all) next = environment_;
  for (const wire::EnvEntry& e : request.entries) {
    if (e.name.empty() || e.name.find('=') != std::string::npos ||
        e.name.find('\0') != std::string::npos ||
        (e.value && e.value->find('\0') != std::string::npos))
      return false;
    if (e.value)
      next[e.name] = *e.value;
    else
      next.erase(e.name);
  }
  std::size_t size = 0;
  for (const auto& [name, value] : next)
    size += name.size() + value.size() + 2;
  if (size > kEnvironmentLimit) return false;
  environment_ = std::move(next);
  return true;
}

wire::EnvReply Supervisor::get_environment() const {
  wire::EnvReply reply;
  for (const auto& [name, value] : environment_)
    reply.entries.emplace_back(name, value);
  return reply;
}

// Children --------------------------------------------------------------------------------------

void Supervisor::reap() {
  std::vector<std::pair<Process*, int>> ended;
  bool childless = false;
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    childless = pid < 0;
    if (pid <= 0) break;
    const auto leader = leaders_.find(pid);
    if (leader == leaders_.end()) {
      stray_reaped(pid);
      continue;
    }
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
  }
  return snapshot_;
}

std::vector<posix::Member> Supervisor::members(const Process& process) {
  posix::TreeIdentity tree = process.tree();
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

std::vector<posix::Member> Supervisor::descendants() {
  return posix::find_descendants(snapshot(), ::getpid());
}

// Ends ------------------------------------------------------------------------------------------

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

void Supervisor::kill_pass() {
  // Everybody is stopped before anybody is killed: who is stopped forks no more, and its children
  // stay below it, where they are found by the next look.
  bool found = true;
  for (int round = 0; found && round < kFreezeRounds; ++round) {
    found = false;
    snapshot_at_ = kNoSnapshot;
    for (auto& [id, frozen] : to_kill_) {
      const Process* process = find(id);
      if (id == 0)
        found |= freeze(id, descendants());
      else if (process)
        found |= freeze(id, members(*process));
    }
  }
  for (const auto& [id, frozen] : to_kill_) {
    for (const posix::Member& m : frozen)
      posix::signal_member(proc_, m, SIGKILL);
    // Where there is no /proc.
    const Process* process = find(id);
    if (frozen.empty() && process && process->running()) ::kill(-process->pid(), SIGKILL);
  }
  to_kill_.clear();
  snapshot_at_ = kNoSnapshot;
}

void Supervisor::stop_all(Connection* connection, std::uint64_t channel, std::int64_t grace_ms,
                          bool exit) {
  exit_after_stop_ |= exit;
  const auto all = descendants();
  if (connection) stop_waiters_.push_back({connection, channel, all.size()});
  const std::int64_t kill_at = loop_.now() + grace_ms;
  if (!stopping_) {
    stopping_ = true;
    stop_kill_at_ = kill_at;
    stop_killing_ = grace_ms <= 0;
    for (const auto& [id, process] : processes_)
      if (process->running() || process->background()) process->end_tree(grace_ms);
    if (!stop_killing_)
      for (const posix::Member& m : all)
        posix::signal_member(proc_, m, SIGTERM);
  }
  stop_kill_at_ = std::min(stop_kill_at_, kill_at);
  stop_step();
}

void Supervisor::stop_step() {
  if (!stopping_) return;
  loop_.cancel(stop_timer_);
  if (loop_.now() >= stop_kill_at_) stop_killing_ = true;
  snapshot_at_ = kNoSnapshot;
  const auto left = descendants();
  if (left.empty() && leaders_.empty()) {
    stopping_ = false;
    answer(stop_waiters_);
    if (exit_after_stop_) loop_.later([this] { loop_.stop(0); });
    return;
  }
  if (stop_killing_)
    for (const posix::Member& m : left)
      posix::signal_member(proc_, m, SIGKILL);
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
  if (!waiting) loop_.stop(0);
}

void Supervisor::check_idle() {
  const bool foreground = std::any_of(leaders_.begin(), leaders_.end(), [](const auto& entry) {
    return !entry.second->request().detach;
  });
  const bool unused = leaders_.empty() && strays_.empty();
  std::int64_t wait = 0;
  if (connections_.empty() && !stopping_ && !leaving_) {
    if (!foreground && options_.idle_ms > 0) wait = options_.idle_ms;
    if (unused && options_.unused_ms > 0)
      wait = wait > 0 ? std::min(wait, options_.unused_ms) : options_.unused_ms;
  }
  loop_.cancel(idle_timer_);
  if (wait > 0)
    idle_timer_ = loop_.at(loop_.now() + wait, [this] {
      idle_timer_ = {};
      stop_all(nullptr, 0, options_.grace_ms, true);
    });
}

}  // namespace sandforge::guest
