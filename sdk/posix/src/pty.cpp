#include "sandforge/posix/pty.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <cstdio>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

namespace sandforge::posix {

bool open_pty(std::uint16_t cols, std::uint16_t rows, Pty& out) noexcept {
  out.master.reset(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!out.master) out.master.reset(::open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!out.master) return false;
  const int master = out.master.get();
  int unlock = 0;
  if (::ioctl(master, TIOCSPTLCK, &unlock) != 0) return false;
  // Needs no path to the slave, which another mount of devpts may hide.
  out.slave.reset(::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!out.slave) {
    int number = 0;
    if (::ioctl(master, TIOCGPTN, &number) != 0) return false;
    char path[32];
    std::snprintf(path, sizeof path, "/dev/pts/%d", number);
    out.slave.reset(::open(path, O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  return out.slave && resize_pty(master, cols, rows) && set_nonblocking(master, true);
}

bool resize_pty(int master, std::uint16_t cols, std::uint16_t rows) noexcept {
  struct winsize size = {};
  size.ws_col = cols;
  size.ws_row = rows;
  return ::ioctl(master, TIOCSWINSZ, &size) == 0;
}

}  // namespace sandforge::posix
