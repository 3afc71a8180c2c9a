#include "sandforge/posix/tree.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <thread>

#include "sandforge/posix/spawn.hpp"
#include "sandforge/posix/system.hpp"

using namespace sandforge::posix;

namespace {

ProcessStat process(pid_t pid, pid_t parent, pid_t session) {
  ProcessStat p;
  p.pid = pid;
  p.parent = parent;
  p.session = session;
  p.state = 'S';
  p.start_time = static_cast<std::uint64_t>(pid) * 10;
  return p;
}

std::vector<pid_t> pids(const std::vector<Member>& members) {
  std::vector<pid_t> out;
  for (const Member& m : members)
    out.push_back(m.pid);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("members are told by descent, session and what is known") {
  const Procfs none;  // no marks are asked for
  constexpr pid_t kRoot = 100;
  std::vector<ProcessStat> all = {
      process(1, 0, 1),         process(kRoot, 1, kRoot), process(200, kRoot, 200),  // our leader
      process(201, 200, 200),   process(202, 201, 202),    // left the session, not the parent
      process(203, kRoot, 200),                            // lost its parent, kept the session
      process(204, kRoot, 204),                            // lost both; known from before
      process(205, 204, 204),   process(300, kRoot, 300),  // another's leader
      process(301, 300, 300),   process(302, kRoot, 302),  // a stray of nobody knows whom
      process(900, 1, 900),                                // not below us
      process(901, 900, 200),                              // whatever its session claims
  };
  TreeIdentity tree;
  tree.leader = 200;
  tree.leader_alive = true;
  tree.known = {{204, 2040, kRoot}};
  CHECK(pids(find_members(none, all, kRoot, tree, {300})) ==
        std::vector<pid_t>{200, 201, 202, 203, 204, 205});
  CHECK(pids(find_descendants(all, kRoot)) ==
        std::vector<pid_t>{200, 201, 202, 203, 204, 205, 300, 301, 302});

  // The number of a leader that is gone may be another's by now.
  tree.leader_alive = false;
  tree.leader = 0;
  CHECK(pids(find_members(none, all, kRoot, tree, {300})) == std::vector<pid_t>{204, 205});
  // A known member whose start time differs is somebody else.
  tree.known[0].start_time = 1;
  CHECK(find_members(none, all, kRoot, tree, {300}).empty());
  // Those that have ended are no members.
  tree.leader = 200;
  all[2].state = 'Z';
  CHECK(pids(find_members(none, all, kRoot, tree, {300})) == std::vector<pid_t>{201, 202, 203});
}

TEST_CASE("several looks in a row are quiet before nobody is left") {
  QuietLooks quiet;
  CHECK_FALSE(quiet.enough(true, 0));
  CHECK_FALSE(quiet.enough(true, 1));
  CHECK_FALSE(quiet.enough(true, 1));  // the same look
  CHECK_FALSE(quiet.enough(false, 2));
  CHECK_FALSE(quiet.enough(true, 3));
  CHECK_FALSE(quiet.enough(true, 4));
  CHECK(quiet.enough(true, 5));
  CHECK(quiet.enough(true, 5));
  CHECK_FALSE(quiet.enough(false, 5));
}

TEST_CASE("a process whose start time differs is not signalled") {
  const Procfs proc;
  SpawnSpec spec;
  spec.argv = {"/bin/sleep", "100"};
  spec.stdin_fd = spec.stdout_fd = spec.stderr_fd = 2;
  spec.environment = {"MARK=yes", "MARKED=no"};
  const SpawnResult child = spawn(spec);
  REQUIRE(child.pid > 0);
  ProcessStat stat;
  REQUIRE(proc.stat(child.pid, stat));
  std::string value;
  // The child has the environment once its exec is through.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!proc.environment(child.pid, "MARK", value) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  CHECK(value == "yes");
  CHECK_FALSE(proc.environment(child.pid, "MAR", value));
  std::vector<pid_t> children;
  REQUIRE(proc.own_children(children));
  CHECK(std::count(children.begin(), children.end(), child.pid) == 1);

  CHECK_FALSE(signal_member(proc, {child.pid, stat.start_time + 1, 0}, SIGKILL));
  CHECK(::waitpid(child.pid, nullptr, WNOHANG) == 0);
  CHECK(signal_member(proc, {child.pid, stat.start_time, 0}, SIGKILL));
  int status = 0;
  REQUIRE(::waitpid(child.pid, &status, 0) == child.pid);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK_FALSE(signal_member(proc, {child.pid, stat.start_time, 0}, SIGKILL));
}

namespace {

constexpr int kHops = 200000;

// Becomes another process in another session, over and over. The last one tells through the pipe.
[[noreturn]] void flee(int pipe) {
  ::setsid();
  for (int hop = 0; hop < kHops; ++hop) {
    const pid_t child = ::fork();
    if (child > 0) ::_exit(0);
    if (child == 0) ::setsid();
  }
  const char escaped = 'x';
  ::_exit(::write(pipe, &escaped, 1) == 1 ? 0 : 1);
}

}  // namespace

TEST_CASE("who flees from process to process is stopped") {
  REQUIRE(become_subreaper());
  Pipe pipe;
  REQUIRE(make_pipe(pipe));
  const Procfs proc;
  const TreeIdentity tree;
  Pursuit pursuit(proc, ::getpid(), tree, true);
  // Before there is any that flees: one whose parent is still there would be taken for a stranger.
  for (const ProcessStat& p : proc.processes())
    pursuit.add_stranger(p.pid);
  const pid_t child = ::fork();
  if (child == 0) flee(pipe.write.get());
  REQUIRE(child > 0);
  pipe.write.reset();
  CHECK(pursuit.run(monotonic_ms() + 30000));
  REQUIRE_FALSE(pursuit.stopped().empty());
  for (const Member& m : pursuit.stopped())
    signal_member(proc, m, SIGKILL);
  int reaped = 0;
  while (::waitpid(-1, nullptr, 0) > 0)
    ++reaped;
  CHECK(reaped > 0);
  // All that held the pipe are gone, and none came through.
  char byte;
  CHECK(::read(pipe.read.get(), &byte, 1) == 0);
  CHECK(is_childless());
  ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

TEST_CASE("a pursuit of all meets also who is below a process that was passed") {
  CHECK(is_childless());
  Pipe up;
  REQUIRE(make_pipe(up));
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t below = ::fork();
    if (below > 0 && ::write(up.write.get(), &below, sizeof below) != sizeof below) ::_exit(1);
    for (;;)
      ::pause();
  }
  REQUIRE(child > 0);
  CHECK_FALSE(is_childless());
  pid_t below = 0;
  REQUIRE(::read(up.read.get(), &below, sizeof below) == sizeof below);
  const Procfs proc;
  const TreeIdentity tree;
  Pursuit pursuit(proc, ::getpid(), tree, true);
  pursuit.add_stranger(child);
  CHECK(pursuit.run(monotonic_ms() + 30000));
  CHECK(pids(pursuit.stopped()) == std::vector<pid_t>{below});
  ::kill(child, SIGKILL);
  ::kill(below, SIGKILL);
  CHECK(::waitpid(child, nullptr, 0) == child);
}
