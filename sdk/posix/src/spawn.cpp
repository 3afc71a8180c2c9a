#include "sandforge/posix/spawn.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>

#include "sandforge/posix/fd.hpp"
#include "sandforge/posix/system.hpp"

namespace sandforge::posix {
namespace {

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// What the child could not do. `path` is a string of the plan: it lies at the same address in both.
struct Failure {
  SpawnStage stage = SpawnStage::none;
  int error_number = 0;
  const char* path = nullptr;
};

// All that the child needs, laid out before the fork. Where it shares our memory until its exec, it
// reports a failure by writing `stage`, `error_number` and `path` here; else through `report`.
struct Plan {
  const SpawnSpec* spec;
  std::vector<std::string> candidates;
  std::vector<char*> argv;         // starts with the slots that running a script needs
  std::vector<char*> environment;  // null-terminated, like argv
  volatile SpawnStage stage = SpawnStage::none;
  volatile int error_number = 0;
  const char* volatile path = nullptr;
  int report = -1;  // a pipe that the exec closes

  [[noreturn]] void fail(SpawnStage at, int error, const char* what = nullptr) {
    error_number = error;
    path = what;
    stage = at;
    const Failure failure = {at, error, what};
    if (report >= 0 && ::write(report, &failure, sizeof failure) != sizeof failure) ::_exit(126);
    ::_exit(127);
  }
};

std::string_view path_of(const std::vector<std::string>& environment) {
  constexpr std::string_view kName = "PATH=";
  for (const std::string& entry : environment)
    if (entry.compare(0, kName.size(), kName) == 0)
      return std::string_view(entry).substr(kName.size());
  return kDefaultPath;
}

std::vector<std::string> candidates_of(const SpawnSpec& spec) {
  const std::string& name = spec.argv.front();
  if (name.find('/') != std::string::npos) return {name};
  std::vector<std::string> out;
  std::string_view path = path_of(spec.environment);
  for (bool last = false; !last;) {
    const std::size_t colon = path.find(':');
    last = colon == std::string_view::npos;
    const std::string_view folder = path.substr(0, colon);
    // An empty element means the current directory.
    out.push_back(folder.empty() ? "./" + name : std::string(folder) + "/" + name);
    if (!last) path.remove_prefix(colon + 1);
  }
  return out;
}

void reset_signals(const std::optional<sigset_t>& changed) noexcept {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  // Calls that libc refuses for its own two signals fail, which is what we want.
  for (int signal = 1; signal < NSIG; ++signal)
    if (!changed || ::sigismember(&*changed, signal) == 1) ::sigaction(signal, &action, nullptr);
}

// Places `fd` at `target`, which close_range must not hit and exec must keep.
bool place(int fd, int target) noexcept {
  if (fd != target) return ::dup2(fd, target) == target;
  return ::fcntl(fd, F_SETFD, 0) == 0;
}

void connect_descriptors(Plan& plan) noexcept {
  int fds[3] = {plan.spec->stdin_fd, plan.spec->stdout_fd, plan.spec->stderr_fd};
  // Move sources out of the way of the targets first.
  for (int target = 0; target < 3; ++target) {
    if (fds[target] > 2 || fds[target] == target) continue;
    fds[target] = ::fcntl(fds[target], F_DUPFD_CLOEXEC, 3);
    if (fds[target] < 0) plan.fail(SpawnStage::setup, errno);
  }
  for (int target = 0; target < 3; ++target)
    if (!place(fds[target], target)) plan.fail(SpawnStage::setup, errno);
}

void become(Plan& plan, const Identity& user) noexcept {
  // Raw calls: libc's would make every thread of the parent change its identity.
  const bool done = ::syscall(SYS_setgroups, user.groups.size(), user.groups.data()) == 0 &&
                    ::syscall(SYS_setresgid, user.gid, user.gid, user.gid) == 0 &&
                    ::syscall(SYS_setresuid, user.uid, user.uid, user.uid) == 0;
  if (!done) plan.fail(SpawnStage::user, errno);
}

void close_others(Plan& plan) noexcept {
  constexpr int place_of_report = 3;
  int first = place_of_report;
  if (plan.report >= 0) {
    if (plan.report != place_of_report && ::dup3(plan.report, place_of_report, O_CLOEXEC) < 0)
      plan.fail(SpawnStage::setup, errno);
    plan.report = place_of_report;
    ++first;
  }
  close_from(first);
}

[[noreturn]] void execute(Plan& plan) noexcept {
  char** argv = plan.argv.data() + 2;
  char** environment = plan.environment.data();
  bool denied = false;
  const char* named = plan.spec->argv.front().c_str();
  const char* denied_path = named;
  for (std::string& candidate : plan.candidates) {
    ::execve(candidate.c_str(), argv, environment);
    if (errno == ENOEXEC) {
      // A script without an interpreter line runs in the shell, as execvp does it.
      char shell[] = "/bin/sh";
      argv[-1] = shell;
      argv[0] = candidate.data();
      ::execve(shell, argv - 1, environment);
      plan.fail(SpawnStage::exec, errno, candidate.c_str());
    }
    switch (errno) {
      case EACCES:
        if (!denied) denied_path = candidate.c_str();
        denied = true;
        break;
      case ENOENT:
      case ENOTDIR:
      case ESTALE:
      case ENODEV:
      case ETIMEDOUT:
        break;
      default:
        plan.fail(SpawnStage::exec, errno, candidate.c_str());
    }
  }
  plan.fail(SpawnStage::exec, denied ? EACCES : ENOENT, denied ? denied_path : named);
}

[[noreturn]] void run_child(Plan& plan) noexcept {
  const SpawnSpec& spec = *plan.spec;
  reset_signals(spec.changed_signals);
  if (::setsid() < 0) plan.fail(SpawnStage::setup, errno);
  if (spec.cgroup_procs_fd >= 0 && ::write(spec.cgroup_procs_fd, "0", 1) != 1)
    plan.fail(SpawnStage::setup, errno);
  connect_descriptors(plan);
  if (spec.controlling_terminal && ::ioctl(0, TIOCSCTTY, 0) != 0)
    plan.fail(SpawnStage::setup, errno);
  ::umask(022);
  if (spec.open_files_limit > 0) {
    struct rlimit limit = {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
      limit.rlim_cur = static_cast<rlim_t>(spec.open_files_limit);
      ::setrlimit(RLIMIT_NOFILE, &limit);
    }
  }
  if (spec.user) become(plan, *spec.user);
  // After the user switch, which clears it.
  if (spec.death_signal != 0) ::prctl(PR_SET_PDEATHSIG, spec.death_signal, 0, 0, 0);
  if (!spec.cwd.empty() && ::chdir(spec.cwd.c_str()) != 0)
    plan.fail(SpawnStage::directory, errno, spec.cwd.c_str());
  close_others(plan);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  execute(plan);
}

// Not inlined, so that nothing of the caller lives in registers across vfork.
[[gnu::noinline]] pid_t fork_and_run(Plan& plan) {
  const pid_t pid = ::vfork();
  if (pid == 0) run_child(plan);
  return pid;
}

// Not so under the thread sanitizer and in some emulators, which make a fork of it.
[[gnu::noinline]] bool vfork_shares_memory() noexcept {
  volatile bool shared = false;
  const pid_t pid = ::vfork();
  if (pid == 0) {
    shared = true;
    ::_exit(0);
  }
  while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return shared;
}

// Where the child tells of failures that shares no memory with us.
class Report {
 public:
  // False with errno set.
  bool open(Plan& plan) noexcept {
    if (!make_pipe(pipe_)) return false;
    // The child's standard descriptors take the first three numbers.
    if (pipe_.write.get() < 3) pipe_.write.reset(::fcntl(pipe_.write.get(), F_DUPFD_CLOEXEC, 3));
    plan.report = pipe_.write.get();
    return static_cast<bool>(pipe_.write);
  }
  // Until the exec, or the end of the child.
  void read(Plan& plan) noexcept {
    if (!pipe_.read) return;
    pipe_.write.reset();
    Failure failure;
    ssize_t n;
    do {
      n = ::read(pipe_.read.get(), &failure, sizeof failure);
    } while (n < 0 && errno == EINTR);
    if (n != sizeof failure) return;
    plan.stage = failure.stage;
    plan.error_number = failure.error_number;
    plan.path = failure.path;
  }

 private:
  Pipe pipe_;
};

SpawnResult no_process(int error_number) {
  SpawnResult result;
  result.stage = SpawnStage::fork;
  result.error_number = error_number;
  return result;
}

}  // namespace

sigset_t changed_signals() noexcept {
  sigset_t changed;
  ::sigemptyset(&changed);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_DFL)
      ::sigaddset(&changed, signal);
  }
  return changed;
}

SpawnResult spawn(const SpawnSpec& spec) {
  Plan plan;
  plan.spec = &spec;
  SpawnResult result;
  if (spec.argv.empty() || spec.argv.front().empty()) {
    result.stage = SpawnStage::exec;
    result.error_number = ENOENT;
    return result;
  }
  plan.candidates = candidates_of(spec);
  plan.argv.assign(2, nullptr);
  for (const std::string& arg : spec.argv)
    plan.argv.push_back(const_cast<char*>(arg.c_str()));
  plan.argv.push_back(nullptr);
  for (const std::string& e : spec.environment)
    plan.environment.push_back(const_cast<char*>(e.c_str()));
  plan.environment.push_back(nullptr);

  static const bool shares_memory = vfork_shares_memory();
  Report report;
  if (!shares_memory && !report.open(plan)) return no_process(errno);

  // No handler of ours may run in the child while it shares our memory.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  result.pid = fork_and_run(plan);
  const int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);

  if (result.pid < 0) return no_process(fork_error);
  report.read(plan);
  result.stage = plan.stage;
  if (result.stage == SpawnStage::none) return result;
  result.error_number = plan.error_number;
  if (plan.path) result.path = plan.path;
  while (::waitpid(result.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  result.pid = -1;
  return result;
}

}  // namespace sandforge::posix
