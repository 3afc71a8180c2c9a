#include "sandforge/posix/spawn.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>
#include <string>
#include <thread>

#include "sandforge/posix/fd.hpp"
#include "sandforge/posix/pty.hpp"
#include "sandforge/posix/system.hpp"

using namespace sandforge::posix;

namespace {

SpawnSpec command(std::vector<std::string> argv) {
  SpawnSpec spec;
  spec.argv = std::move(argv);
  spec.environment = {"PATH=/usr/bin:/bin"};
  spec.stdin_fd = spec.stdout_fd = spec.stderr_fd = 2;
  return spec;
}

struct Ran {
  std::string out;
  int status = -1;
};

Ran run(SpawnSpec spec) {
  Pipe pipe;
  REQUIRE(make_pipe(pipe));
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  spec.stdin_fd = null.get();
  spec.stdout_fd = pipe.write.get();
  const SpawnResult result = spawn(spec);
  REQUIRE(result.stage == SpawnStage::none);
  pipe.write.reset();
  Ran ran;
  char chunk[4096];
  for (ssize_t n; (n = ::read(pipe.read.get(), chunk, sizeof chunk)) > 0;)
    ran.out.append(chunk, static_cast<std::size_t>(n));
  REQUIRE(::waitpid(result.pid, &ran.status, 0) == result.pid);
  return ran;
}

}  // namespace

TEST_CASE("a child has its session, its environment and three descriptors") {
  CHECK(run(command({"env"})).out == "PATH=/usr/bin:/bin\n");
  const Fd leaking(::open("/dev/null", O_RDONLY));
  CHECK(run(command({"ls", "/proc/self/fd"})).out == "0\n1\n2\n3\n");
  const Ran ids = run(command({"sh", "-c", "set -- $(cat /proc/$$/stat); echo $1 $5 $6"}));
  const std::string pid = ids.out.substr(0, ids.out.find(' '));
  CHECK(ids.out == pid + " " + pid + " " + pid + "\n");
}

TEST_CASE("signals that the caller blocks or ignores are not inherited") {
  sigset_t set, before;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  const auto old = ::signal(SIGPIPE, SIG_IGN);
  const std::string status = run(command({"cat", "/proc/self/status"})).out;
  SpawnSpec knowing = command({"cat", "/proc/self/status"});
  knowing.changed_signals = changed_signals();
  const std::string same = run(knowing).out;
  SpawnSpec mistaken = command({"cat", "/proc/self/status"});
  ::sigemptyset(&mistaken.changed_signals.emplace());
  const std::string ignoring = run(mistaken).out;
  ::signal(SIGPIPE, old);
  for (const std::string& text : {status, same}) {
    CHECK(text.find("SigBlk:\t0000000000000000") != std::string::npos);
    CHECK(text.find("SigIgn:\t0000000000000000") != std::string::npos);
  }
  CHECK(::sigismember(&*knowing.changed_signals, SIGPIPE) == 1);
  CHECK(::sigismember(&*knowing.changed_signals, SIGUSR2) == 0);
  // None but those that were named are reset.
  CHECK(ignoring.find("SigIgn:\t0000000000001000") != std::string::npos);
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  CHECK(::sigismember(&after, SIGUSR2) == 1);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("what fails is told apart, and leaves nothing to reap") {
  SpawnResult result = spawn(command({"no-such-program-here"}));
  CHECK(result.stage == SpawnStage::exec);
  CHECK(result.error_number == ENOENT);
  CHECK(result.path == "no-such-program-here");
  CHECK(result.pid == -1);

  SpawnSpec spec = command({"true"});
  spec.cwd = "/no/such/folder";
  result = spawn(spec);
  CHECK(result.stage == SpawnStage::directory);
  CHECK(result.error_number == ENOENT);
  CHECK(result.path == "/no/such/folder");

  result = spawn(command({"/etc/passwd"}));
  CHECK(result.stage == SpawnStage::exec);
  CHECK(result.error_number == EACCES);
  CHECK(result.path == "/etc/passwd");

  result = spawn(command({"/"}));
  CHECK(result.stage == SpawnStage::exec);
  CHECK(result.error_number == EACCES);

  spec = command({"true"});
  spec.stdout_fd = 1000;
  result = spawn(spec);
  CHECK(result.stage == SpawnStage::setup);
  CHECK(result.error_number == EBADF);

  result = spawn(command({}));
  CHECK(result.stage == SpawnStage::exec);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("PATH of the new environment is searched, relative to the new folder") {
  SpawnSpec spec = command({"true"});
  spec.environment = {"PATH=/no/where"};
  CHECK(spawn(spec).error_number == ENOENT);
  spec.environment = {};
  CHECK(WEXITSTATUS(run(spec).status) == 0);
  spec = command({"bin/true"});
  spec.cwd = "/usr";
  CHECK(WEXITSTATUS(run(spec).status) == 0);
  spec = command({"true"});
  spec.environment = {"PATH=:/no/where"};
  spec.cwd = "/usr/bin";
  CHECK(WEXITSTATUS(run(spec).status) == 0);
}

TEST_CASE("descriptors may lie anywhere, also on each other's place") {
  Pipe pipe;
  REQUIRE(make_pipe(pipe));
  // Standard output goes where standard error is, and the other way round.
  SpawnSpec spec = command({"sh", "-c", "echo out; echo err >&2; cat"});
  const Fd saved(::fcntl(1, F_DUPFD_CLOEXEC, 3));
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  REQUIRE(::dup2(pipe.write.get(), 1) == 1);
  spec.stdin_fd = null.get();
  spec.stdout_fd = 2;
  spec.stderr_fd = 1;
  const Fd saved_error(::fcntl(2, F_DUPFD_CLOEXEC, 3));
  REQUIRE(::dup2(null.get(), 2) == 2);
  const SpawnResult result = spawn(spec);
  ::dup2(saved.get(), 1);
  ::dup2(saved_error.get(), 2);
  pipe.write.reset();
  REQUIRE(result.stage == SpawnStage::none);
  char text[16];
  REQUIRE(::read(pipe.read.get(), text, sizeof text) == 4);
  CHECK(std::string(text, 4) == "err\n");
  CHECK(::waitpid(result.pid, nullptr, 0) == result.pid);
}

TEST_CASE("users, limits and the death of the parent") {
  SpawnSpec spec = command({"sh", "-c", "id -u; id -g; id -G; ulimit -Sn"});
  spec.open_files_limit = 77;
  if (::geteuid() == 0) {
    spec.user.emplace();
    spec.user->uid = 1234;
    spec.user->gid = 2345;
    spec.user->groups = {3, 4};
    CHECK(run(spec).out == "1234\n2345\n2345 3 4\n77\n");
    // A folder that only root may enter: as the user, it is no working directory.
    char folder[] = "/tmp/sandforge-posix-XXXXXX";
    REQUIRE(::mkdtemp(folder));
    spec.cwd = folder;
    const SpawnResult result = spawn(spec);
    CHECK(result.stage == SpawnStage::directory);
    CHECK(result.error_number == EACCES);
    ::rmdir(folder);
  } else {
    CHECK(run(spec).out.find("77\n") != std::string::npos);
    spec.user.emplace();
    const SpawnResult result = spawn(spec);
    CHECK(result.stage == SpawnStage::user);
    CHECK(result.error_number == EPERM);
  }
  // Sent when the thread that spawned it ends.
  pid_t pid = -1;
  std::thread([&] {
    SpawnSpec sleeper = command({"sleep", "100"});
    sleeper.death_signal = SIGKILL;
    pid = spawn(sleeper).pid;
  }).join();
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(WTERMSIG(status) == SIGKILL);
}

TEST_CASE("many threads may spawn at once") {
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (std::size_t t = 0; t < right.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const SpawnResult result = spawn(command({"true"}));
        int status = 0;
        if (result.pid > 0 && ::waitpid(result.pid, &status, 0) == result.pid && status == 0)
          ++right[t];
      }
    });
  for (std::thread& t : threads)
    t.join();
  CHECK(right == std::vector<int>(4, 25));
}

TEST_CASE("a terminal is the session's own") {
  Pty pty;
  REQUIRE(open_pty(100, 40, pty));
  SpawnSpec spec = command({"sh", "-c", "stty size; echo > /dev/tty"});
  spec.stdin_fd = spec.stdout_fd = spec.stderr_fd = pty.slave.get();
  spec.controlling_terminal = true;
  const SpawnResult result = spawn(spec);
  REQUIRE(result.stage == SpawnStage::none);
  int status = 0;
  REQUIRE(::waitpid(result.pid, &status, 0) == result.pid);
  CHECK(status == 0);
  char text[64];
  const ssize_t n = ::read(pty.master.get(), text, sizeof text);
  REQUIRE(n > 0);
  CHECK(std::string(text, static_cast<std::size_t>(n)).find("40 100\r\n") == 0);
  CHECK(resize_pty(pty.master.get(), 1, 2));
}
