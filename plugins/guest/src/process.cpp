#include "process.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "connection.hpp"
#include "sandforge/posix/pty.hpp"
#include "sandforge/posix/spawn.hpp"
#include "sandforge/posix/system.hpp"
#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

constexpr std::size_t kShownCommand = 1024;
// What a command that ends at once need not pay for is done after this time.
constexpr std::int64_t kSettleMs = 2;
// A deadline further away than this is none that anybody will see.
constexpr std::uint64_t kMaxTimeoutMs = std::uint64_t{1} << 50;

std::string describe(int error_number) {
  const char* text = ::strerrordesc_np(error_number);
  return text ? text : "error " + std::to_string(error_number);
}

bool is_set(const std::vector<std::string>& environment, std::string_view name) {
  return std::any_of(environment.begin(), environment.end(), [&](const std::string& e) {
    return e.size() > name.size() && e.compare(0, name.size(), name) == 0 && e[name.size()] == '=';
  });
}

wire::ErrorInfo error_of(const posix::SpawnResult& result) {
  wire::ErrorInfo error;
  error.error_number = result.error_number;
  const std::string reason = ": " + describe(result.error_number);
  switch (result.stage) {
    case posix::SpawnStage::directory:
      error.code = wire::ErrorCode::no_directory;
      error.message = "cannot enter the working directory " + result.path + reason;
      break;
    case posix::SpawnStage::exec:
      error.code = result.error_number == ENOENT  ? wire::ErrorCode::no_command
                   : result.error_number == E2BIG ? wire::ErrorCode::too_large
                                                  : wire::ErrorCode::not_executable;
      error.message = "cannot run " + result.path + reason;
      break;
    case posix::SpawnStage::user:
      error.code = wire::ErrorCode::not_permitted;
      error.message = "cannot become the user" + reason;
      break;
    case posix::SpawnStage::fork:
      error.code = wire::ErrorCode::limit;
      error.message = "cannot make a process" + reason;
      break;
    default:
      error.message = "cannot prepare the process" + reason;
  }
  return error;
}

}  // namespace

Process::Process(Supervisor& supervisor, std::uint64_t id, wire::SpawnRequest request)
    : supervisor_(supervisor),
      id_(id),
      request_(std::move(request)),
      log_(supervisor.log_budget(), supervisor.options().log_bytes) {
  for (int i = 0; i < 2; ++i) {
    outputs_[i].process = this;
    outputs_[i].stream = i;
  }
  input_.process = this;
}

Process::~Process() {
  EventLoop& loop = supervisor_.loop();
  loop.cancel(deadline_);
  loop.cancel(settle_timer_);
  loop.cancel(drain_timer_);
  loop.cancel(tree_timer_);
  for (Output& out : outputs_)
    close_output(out);
  close_input(0);
}

std::string Process::directory() const {
  const std::string& root = supervisor_.options().root;
  if (request_.cwd.empty()) return root;
  if (request_.cwd.front() == '/' || root.empty()) return request_.cwd;
  return root + "/" + request_.cwd;
}

std::vector<std::string> Process::environment() const {
  std::map<std::string, std::string> merged;
  if (request_.stored_environment) merged = supervisor_.environment();
  if (request_.tty && !request_.tty->term.empty()) merged["TERM"] = request_.tty->term;
  for (const wire::EnvEntry& e : request_.env) {
    if (e.value)
      merged[e.name] = *e.value;
    else
      merged.erase(e.name);
  }
  merged[kMarkName] = supervisor_.mark_of(id_);
  std::vector<std::string> out;
  out.reserve(merged.size() + 2);
  for (const auto& [name, value] : merged)
    out.push_back(name + "=" + value);
  return out;
}

bool Process::open_streams(posix::Fd child[3], wire::ErrorInfo& error) {
  const auto failed = [&] {
    error.code = errno == EMFILE || errno == ENFILE || errno == ENOMEM ? wire::ErrorCode::limit
                                                                       : wire::ErrorCode::internal;
    error.error_number = errno;
    error.message = "cannot open the streams of the process: " + describe(errno);
    return false;
  };
  if (request_.tty) {
    posix::Pty pty;
    if (!posix::open_pty(request_.tty->cols, request_.tty->rows, pty)) return failed();
    input_.fd.reset(::fcntl(pty.master.get(), F_DUPFD_CLOEXEC, 3));
    input_.terminal = true;
    outputs_[0].fd = std::move(pty.master);
    child[0] = std::move(pty.slave);
    return input_.fd ? true : failed();
  }
  posix::Pipe pipe;
  if (request_.stdin_mode == wire::StdinMode::pipe) {
    if (!posix::make_pipe(pipe) || !posix::set_nonblocking(pipe.write.get(), true)) return failed();
    child[0] = std::move(pipe.read);
    input_.fd = std::move(pipe.write);
  }
  for (int i = 0; i < (request_.combined ? 1 : 2); ++i) {
    if (!posix::make_pipe(pipe, posix::PipeEnd::read)) return failed();
    outputs_[i].fd = std::move(pipe.read);
    child[1 + i] = std::move(pipe.write);
  }
  return true;
}

bool Process::start(wire::ErrorInfo& error) {
  posix::SpawnSpec spec;
  if (!request_.user.empty()) {
    std::string why;
    posix::Identity& user = spec.user.emplace();
    if (!posix::find_identity(request_.user, user, why)) {
      error.code = wire::ErrorCode::invalid;
      error.message = why;
      return false;
    }
    // Nothing to switch, and perhaps no right to call setgroups.
    if (::geteuid() != 0 && user.uid == ::geteuid() && user.gid == ::getegid()) spec.user.reset();
  }
  posix::Fd child[3];
  if (!open_streams(child, error)) return false;

  spec.argv = request_.argv;
  if (spec.argv.empty()) spec.argv = {"/bin/sh", "-c", request_.shell_text};
  spec.environment = environment();
  if (spec.user && !spec.user->home.empty() && !is_set(spec.environment, "HOME"))
    spec.environment.push_back("HOME=" + spec.user->home);
  spec.cwd = directory();
  spec.stdin_fd = child[0] ? child[0].get() : supervisor_.null_device();
  spec.stdout_fd = request_.tty ? child[0].get() : child[1].get();
  spec.stderr_fd = request_.tty ? child[0].get() : (child[2] ? child[2] : child[1]).get();
  spec.controlling_terminal = request_.tty.has_value();
  spec.death_signal = request_.detach ? 0 : SIGKILL;
  spec.open_files_limit = supervisor_.open_files_limit();
  spec.changed_signals = supervisor_.changed_signals();
  started_unix_ms_ = posix::unix_ms();
  started_ns_ = posix::monotonic_ns();
  const posix::SpawnResult result = posix::spawn(spec);
  if (result.stage != posix::SpawnStage::none) {
    error = error_of(result);
    if (result.stage == posix::SpawnStage::user) error.message += " " + request_.user;
    return false;
  }
  pid_ = session_ = result.pid;
  forget_request();

  EventLoop& loop = supervisor_.loop();
  settle_timer_ = loop.at(loop.now() + kSettleMs, [this] {
    settle_timer_ = {};
    supervisor_.prefer_for_oom(pid_);
  });
  for (Output& out : outputs_)
    if (out.fd) loop.watch(out.fd.get(), EPOLLIN, out);
  if (input_.fd) loop.watch(input_.fd.get(), EPOLLOUT, input_);
  if (request_.timeout_ms > 0)
    deadline_ = loop.at(
        loop.now() + static_cast<std::int64_t>(std::min(request_.timeout_ms, kMaxTimeoutMs)),
        [this] { deadline_passed(); });
  return true;
}

// Thousands of ended processes are remembered, whose requests were up to 8 MiB each, and whose
// environments may hold secrets.
void Process::forget_request() {
  command_ = request_.shell_text.substr(0, kShownCommand);
  for (const std::string& arg : request_.argv) {
    if (command_.size() >= kShownCommand) break;
    if (&arg != &request_.argv.front()) command_ += ' ';
    command_.append(arg, 0, kShownCommand - command_.size());
  }
  request_.argv = std::vector<std::string>();
  request_.env = std::vector<wire::EnvEntry>();
  request_.shell_text = std::string();
}

void Process::deadline_passed() {
  deadline_ = {};
  if (exited_) return;
  exit_.timed_out = true;
  end_tree(static_cast<std::int64_t>(std::min(request_.grace_ms, kMaxTimeoutMs)));
}

void Process::leader_exited(int wait_status) {
  exited_ = true;
  if (WIFSIGNALED(wait_status))
    exit_.signal = WTERMSIG(wait_status);
  else
    exit_.code = WEXITSTATUS(wait_status);
  exit_.killed = ending_;
  exit_.duration_ns = static_cast<std::uint64_t>(posix::monotonic_ns() - started_ns_);
  EventLoop& loop = supervisor_.loop();
  loop.cancel(deadline_);
  loop.cancel(settle_timer_);
  drain_.leader_exited(loop.now());
  close_input(0);
  for (Attachment* a : attachments_)
    tell_exit(*a);
  pump();
  check_over();
  look_at_tree();
}

void Process::check_over() {
  if (over_ || !exited_) return;
  const bool held = outputs_[0].fd || outputs_[1].fd;
  if (held && !drain_.over(supervisor_.loop().now())) {
    arm_drain();
    return;
  }
  finish();
}

void Process::arm_drain() {
  const auto deadline = drain_.deadline();
  if (!deadline || drain_timer_.second != 0) return;
  drain_timer_ = supervisor_.loop().at(*deadline, [this] {
    drain_timer_ = {};
    pump();
    check_over();
  });
}

void Process::finish() {
  over_ = true;
  supervisor_.loop().cancel(drain_timer_);
  for (Attachment* a : attachments_)
    bound(*a);
  offer();
  const std::vector<Attachment*> all = attachments_;
  for (Attachment* a : all)
    end_channel(*a);
  supervisor_.process_over(*this);
}

void Process::bound(Attachment& a) const {
  a.bounded = true;
  a.until = log_.end();
  for (int i = 0; i < 2; ++i)
    a.total[i] = log_.total(i);
}

void Process::tell_exit(Attachment& a) {
  if (std::exchange(a.exit_told, true)) return;
  a.connection->send_message(wire::FrameType::exited, a.channel, exit_);
}

bool Process::end_channel(Attachment& a) {
  if (!a.bounded || a.closed || std::max(a.at, log_.begin()) < a.until) return false;
  wire::End end;
  end.total = wire::Cursor(a.total[0], a.total[1]);
  std::uint64_t dropped[2];
  for (int i = 0; i < 2; ++i)
    dropped[i] = a.total[i] > a.from[i] ? a.total[i] - a.from[i] - a.delivered[i] : 0;
  end.dropped = wire::Cursor(dropped[0], dropped[1]);
  end.pipes_held = outputs_[0].fd || outputs_[1].fd;
  end.background = background();
  a.connection->send_message(wire::FrameType::end, a.channel, end);
  detach(a);
  a.connection->drop(a);
  return true;
}

wire::Started Process::started(bool existing) const {
  wire::Started message;
  message.process = wire::ProcessId{id_};
  message.pid = pid_;
  message.existing = existing;
  return message;
}

wire::ProcessInfo Process::info(std::size_t shown) const {
  wire::ProcessInfo info;
  info.process = wire::ProcessId{id_};
  info.request_id = request_.request_id;
  info.tag = request_.tag;
  info.command = command_.substr(0, shown);
  info.pid = pid_;
  info.state = over_     ? wire::ProcessState::ended
               : exited_ ? wire::ProcessState::draining
                         : wire::ProcessState::running;
  info.detached = request_.detach;
  info.background = exited_ && background();
  if (exited_) info.exit = exit_;
  info.started_unix_ms = started_unix_ms_;
  info.log_begin = wire::Cursor(log_.first(0), log_.first(1));
  info.log_end = wire::Cursor(log_.total(0), log_.total(1));
  return info;
}

}  // namespace sandforge::guest
