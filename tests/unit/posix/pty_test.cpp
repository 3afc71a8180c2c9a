#include "sandforge/posix/pty.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <cerrno>

using namespace sandforge::posix;

TEST_CASE("a terminal has two ends, its size, and leaks into no child") {
  Pty pty;
  REQUIRE(open_pty(120, 50, pty));
  struct winsize size = {};
  REQUIRE(::ioctl(pty.slave.get(), TIOCGWINSZ, &size) == 0);
  CHECK(size.ws_col == 120);
  CHECK(size.ws_row == 50);
  CHECK(resize_pty(pty.master.get(), 10, 20));
  REQUIRE(::ioctl(pty.slave.get(), TIOCGWINSZ, &size) == 0);
  CHECK(size.ws_col == 10);
  CHECK(size.ws_row == 20);
  CHECK(::isatty(pty.slave.get()) == 1);
  CHECK((::fcntl(pty.master.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((::fcntl(pty.slave.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((::fcntl(pty.master.get(), F_GETFL) & O_NONBLOCK) != 0);
  char byte;
  CHECK(::read(pty.master.get(), &byte, 1) == -1);
  CHECK(errno == EAGAIN);
  CHECK_FALSE(resize_pty(-1, 1, 1));
}
