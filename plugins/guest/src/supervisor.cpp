#include "supervisor.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sandforge/posix/spawn.hpp"
#include "sandforge/posix/system.hpp"

namespace sandforge::guest {
namespace {

constexpr std::size_t kOverLimit = 1024;       // ended processes that are remembered
constexpr std::size_t kKnownLimit = 4096;      // all processes
constexpr std::size_t kReleasedLimit = 16384;  // request ids of those that were released
constexpr std::size_t kConnectionLimit = 64;
constexpr std::size_t kWaiterLimit = 1024;                  // for the end of one process
constexpr std::size_t kListedSize = wire::kMaxMessage / 4;  // of command lines in one list
constexpr std::size_t kEnvironmentLimit = 2 * 1024 * 1024;
constexpr int kOomDistance = 300;

// As many descriptors as we may have; commands get back what we were started with.
int raise_open_files() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return before > INT32_MAX ? 0 : static_cast<int>(before);
}

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> out;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t split = text.find('=');
    if (split != std::string::npos && split > 0)
      out.emplace(text.substr(0, split), text.substr(split + 1));
  }
  return out;
}

}  // namespace

Supervisor::Supervisor(EventLoop& loop, const ServeOptions& options, bool subreaper)
    : loop_(loop),
      options_(options),
      subreaper_(subreaper),
      instance_(posix::random_hex(16)),
      open_files_limit_(raise_open_files()),
      changed_signals_(posix::changed_signals()),
      null_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
      started_ms_(posix::monotonic_ms()) {
  budget_.limit = options.log_total_bytes;
  std::string own;
  if (posix::read_file("/proc/self/oom_score_adj", own, 16))
    oom_score_ = std::min(1000, std::atoi(own.c_str()) + kOomDistance);
  if (options.inherit) environment_ = own_environment();
  touch();
  if (options.idle_ms > 0) check_active();
  check_idle();
}

Supervisor::~Supervisor() {
  // They tell their channels, which belong to the connections.
  processes_.clear();
  // Stays for as long as detached commands are in it; a later guest removes it then.
  group_.leave_and_remove();
}

void Supervisor::make_group() {
  if (options_.group) group_.make_and_enter(instance_);
}

bool Supervisor::start_main(std::string& why) {
  if (options_.main_command.empty()) return true;
  posix::SpawnSpec spec;
  spec.argv = options_.main_command;
  for (const auto& [name, value] : own_environment())
    spec.environment.push_back(name + "=" + value);
  spec.cwd = options_.root;
  spec.stdin_fd = STDIN_FILENO;
  spec.stdout_fd = STDOUT_FILENO;
  spec.stderr_fd = STDERR_FILENO;
  spec.open_files_limit = open_files_limit_;
  const posix::SpawnResult started = posix::spawn(spec);
  main_ = started.pid;
  if (started.stage == posix::SpawnStage::none) return true;
  main_ = 0;
  why = started.path + ": " + std::strerror(started.error_number);
  return false;
}

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
  std::uint64_t out = wire::kFeaturePty;
  if (subreaper_) out |= wire::kFeatureSubreaper;
  if (group_) out |= wire::kFeatureCgroup;
  if (::geteuid() == 0) out |= wire::kFeatureUser;
  if (posix::open_pidfd(::getpid())) out |= wire::kFeaturePidfd;
  return out;
}

void Supervisor::bury(std::shared_ptr<void> dead) {
  buried_.push_back(std::move(dead));
  if (buried_.size() == 1) clear_buried();
}

// Work that the dead had asked for before their end may still be waiting: it comes first.
void Supervisor::clear_buried() {
  loop_.later([this] {
    loop_.later([this, count = buried_.size()] {
      const auto end = buried_.begin() + static_cast<std::ptrdiff_t>(count);
      const std::vector<std::shared_ptr<void>> gone(buried_.begin(), end);
      buried_.erase(buried_.begin(), end);
      if (!buried_.empty()) clear_buried();
    });
  });
}

// Hosts -----------------------------------------------------------------------------------------

bool Supervisor::add_connection(posix::Fd socket) {
  if (connections_.size() >= kConnectionLimit) return false;
  auto connection = std::make_unique<Connection>(*this, std::move(socket));
  if (!connection->start()) return false;
  connections_.push_back(std::move(connection));
  touch();
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
  touch();
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
  if (kill_waiters_[process.id()].size() >= kWaiterLimit) {
    connection.send_error(channel, wire::ErrorCode::limit, "too many wait for the end already");
    return;
  }
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
  if (released_early_.count(process.id()) != 0) loop_.later([this] { forget_early(); });
  if (leaving_) shut_down();
}

void Supervisor::release(Connection& connection, std::uint64_t channel, Process& process) {
  if (!process.over()) {
    connection.send_error(channel, wire::ErrorCode::conflict, "the process has not ended");
    return;
  }
  remember_released(process.request().request_id);
  if (process.ending()) {
    released_early_.insert(process.id());
  } else {
    forget(process);
  }
  // It comes along with the next command, whose host need not wake up for it.
  connection.send_lazily(wire::FrameType::done, channel, {});
}

void Supervisor::forget_early() {
  for (auto it = released_early_.begin(); it != released_early_.end();) {
    Process* process = find(*it);
    if (process && process->ending()) {
      ++it;
      continue;
    }
    if (process) forget(*process);
    it = released_early_.erase(it);
  }
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
  const std::size_t shown = kListedSize / std::max<std::size_t>(processes_.size(), 1);
  wire::ListReply reply;
  for (const auto& [id, process] : processes_)
    reply.processes.push_back(process->info(shown));
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

std::string Supervisor::set_environment(const wire::EnvSetRequest& request) {
  std::map<std::string, std::string> next;
  if (!request.replace_all) next = environment_;
  for (const wire::EnvEntry& e : request.entries) {
    if (e.name.empty() || e.name.find('=') != std::string::npos ||
        e.name.find('\0') != std::string::npos)
      return "a variable's name is empty, or holds '=' or a NUL byte";
    if (e.value && e.value->find('\0') != std::string::npos)
      return "the value of the variable " + e.name + " holds a NUL byte";
    if (e.value)
      next[e.name] = *e.value;
    else
      next.erase(e.name);
  }
  std::size_t size = 0;
  for (const auto& [name, value] : next)
    size += name.size() + value.size() + 2;
  if (size > kEnvironmentLimit)
    return "the variables are longer than " + std::to_string(kEnvironmentLimit) + " bytes";
  environment_ = std::move(next);
  return {};
}

wire::EnvReply Supervisor::get_environment() const {
  wire::EnvReply reply;
  for (const auto& [name, value] : environment_)
    reply.entries.emplace_back(name, value);
  return reply;
}

}  // namespace sandforge::guest
