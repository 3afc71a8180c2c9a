#include "sandforge/posix/system.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <string>

using namespace sandforge::posix;

TEST_CASE("a call that is filtered is as absent as one that does not exist") {
  CHECK(call_is_absent(ENOSYS));
  CHECK(call_is_absent(EPERM));
  CHECK_FALSE(call_is_absent(ESRCH));
  CHECK_FALSE(call_is_absent(0));
}

TEST_CASE("descriptors are closed from a number on") {
  const pid_t child = ::fork();
  if (child == 0) {
    const int low = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int high = ::fcntl(low, F_DUPFD_CLOEXEC, 700);
    close_from(low + 1);
    const bool right = ::fcntl(low, F_GETFD) >= 0 && ::fcntl(high, F_GETFD) < 0;
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a process is signalled through its descriptor, and not once it is gone") {
  const pid_t child = ::fork();
  if (child == 0)
    for (;;)
      ::pause();
  const Fd pidfd = open_pidfd(child);
  if (pidfd)
    CHECK(signal_pidfd(pidfd.get(), SIGKILL));
  else
    ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  if (pidfd) CHECK_FALSE(signal_pidfd(pidfd.get(), SIGKILL));
  CHECK_FALSE(open_pidfd(child));
}

TEST_CASE("clocks go on, and random bytes differ") {
  const auto ms = monotonic_ms();
  const auto ns = monotonic_ns();
  CHECK(ns / 1000000 >= ms);
  CHECK(monotonic_ms() >= ms);
  CHECK(unix_ms() > 1500000000000);
  std::string one(32, '\0'), two(32, '\0');
  random_bytes(one.data(), one.size());
  random_bytes(two.data(), two.size());
  CHECK(one != two);
  const std::string name = random_hex(16);
  CHECK(name.size() == 32);
  CHECK(name.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(name != random_hex(16));
}
