#include "sandforge/posix/cgroup.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>
#include <string>

#include "sandforge/posix/system.hpp"

using namespace sandforge::posix;
using Folders = std::vector<std::string>;

TEST_CASE("the group is found where version 2 is mounted alone") {
  const std::string mounts =
      "22 1 0:20 / /proc rw - proc proc rw\n"
      "30 1 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  CHECK(own_group_folders_in(mounts, "0::/user.slice/a b\n") ==
        Folders{"/sys/fs/cgroup/user.slice/a b"});
  CHECK(own_group_folders_in(mounts, "0::/\n") == Folders{"/sys/fs/cgroup"});
}

TEST_CASE("the group is found beside version 1") {
  const std::string mounts =
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
      "32 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  CHECK(own_group_folders_in(mounts, "4:memory:/x/y\n1:name=systemd:/z\n0::/jobs\n") ==
        Folders{"/sys/fs/cgroup/unified/jobs"});
}

TEST_CASE("a mount may show a part of the groups, at a place of any name") {
  const std::string mounts =
      "40 1 0:38 / /all rw - cgroup2 none rw\n"
      "41 1 0:38 /docker/abc /sys/fs/c\\040group rw master:1 propagate_from:2 - cgroup2 cgroup rw\n"
      "42 1 0:38 /docker/abcd /other rw - cgroup2 cgroup rw\n"
      "43 1 0:38 /.. /outside rw - cgroup2 cgroup rw\n";
  CHECK(own_group_folders_in(mounts, "0::/docker/abc\n") ==
        Folders{"/sys/fs/c group", "/all/docker/abc"});
  CHECK(own_group_folders_in(mounts, "0::/docker/abc/x\n") ==
        Folders{"/sys/fs/c group/x", "/all/docker/abc/x"});
}

TEST_CASE("where there is no group, none is found") {
  const std::string version_1 = "32 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
  CHECK(own_group_folders_in(version_1, "4:memory:/x\n0::/\n").empty());
  const std::string version_2 = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  CHECK(own_group_folders_in(version_2, "4:memory:/x\n").empty());
  // Of another namespace: not below what is mounted here.
  CHECK(own_group_folders_in(version_2, "0::/../other\n").empty());
  for (const std::string& broken : {std::string(), std::string("\n\n"), std::string("30 1 0:26"),
                                    std::string("- cgroup2"), std::string(1000, ' ')})
    CHECK(own_group_folders_in(broken, broken).empty());
}

TEST_CASE("only a group of the name that is asked for is opened") {
  ControlGroup group;
  CHECK_FALSE(group.open("", "x"));
  CHECK_FALSE(group.open("/sys/fs/cgroup", "x"));
  CHECK_FALSE(group.open("/tmp/sandforge-guest-x", "x"));
  CHECK_FALSE(group.open("/sys/../sandforge-guest-x", "x"));
  CHECK_FALSE(group);
  CHECK_FALSE(group.kill_others());
  CHECK_FALSE(group.freeze_others(10));
  CHECK_FALSE(group.leave_and_remove());
}

TEST_CASE("a group freezes, kills and goes away, and spares who owns it") {
  ControlGroup group;
  if (!group.make_and_enter("test-" + std::to_string(::getpid()))) {
    WARN("SKIPPED: no control group can be made here");
    return;
  }
  const auto child = [] {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setsid();
      for (;;)
        ::pause();
    }
    return pid;
  };
  CHECK(group.contains_caller());
  const pid_t frozen = child();
  REQUIRE(group.freeze_others(10000));
  CHECK_FALSE(group.contains_caller());
  ::kill(frozen, SIGTERM);
  CHECK(::waitpid(frozen, nullptr, WNOHANG) == 0);
  CHECK(group.thaw());
  int status = 0;
  REQUIRE(::waitpid(frozen, &status, 0) == frozen);
  CHECK(WTERMSIG(status) == SIGTERM);

  const pid_t killed = child();
  CHECK(group.kill_others());
  REQUIRE(::waitpid(killed, &status, 0) == killed);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(group.contains_caller());

  const pid_t left = child();
  CHECK_FALSE(group.leave_and_remove());
  ControlGroup seen_by_another;
  REQUIRE(seen_by_another.open(group.path(), "test-" + std::to_string(::getpid())));
  CHECK_FALSE(seen_by_another.contains_caller());
  CHECK(seen_by_another.kill_and_wait(10000));
  REQUIRE(::waitpid(left, &status, 0) == left);
  CHECK(seen_by_another.leave_and_remove());
  CHECK(::access(group.path().c_str(), F_OK) != 0);
}
