#include "sandforge/posix/fd.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace sandforge::posix {

void Fd::reset(int fd) noexcept {
  // Linux has closed the descriptor even when close reports EINTR.
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

bool make_pipe(Pipe& pipe, PipeEnd nonblocking) noexcept {
  int ends[2];
  const bool any = nonblocking != PipeEnd::none;
  if (::pipe2(ends, any ? O_CLOEXEC | O_NONBLOCK : O_CLOEXEC) != 0) return false;
  pipe.read.reset(ends[0]);
  pipe.write.reset(ends[1]);
  // Each end has flags of its own. One call fewer than setting the other end.
  if (!any) return true;
  return nonblocking == PipeEnd::read ? ::fcntl(ends[1], F_SETFL, O_WRONLY) == 0
                                      : ::fcntl(ends[0], F_SETFL, O_RDONLY) == 0;
}

bool set_nonblocking(int fd, bool on) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return false;
  const int wanted = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  return wanted == flags || ::fcntl(fd, F_SETFL, wanted) == 0;
}

bool read_file(const char* path, std::string& out, std::size_t limit) {
  return read_file_at(AT_FDCWD, path, out, limit);
}

bool read_file_at(int dir, const char* path, std::string& out, std::size_t limit) {
  out.clear();
  // A pipe in its place must not make us wait.
  const Fd fd(::openat(dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return false;
  char chunk[4096];
  while (out.size() < limit) {
    const std::size_t want = limit - out.size() < sizeof chunk ? limit - out.size() : sizeof chunk;
    const ssize_t n = ::read(fd.get(), chunk, want);
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    out.append(chunk, static_cast<std::size_t>(n));
  }
  return true;
}

bool write_file_at(int dir, const char* path, const char* text) noexcept {
  const Fd fd(::openat(dir, path, O_WRONLY | O_CLOEXEC));
  if (!fd) return false;
  const auto size = std::strlen(text);
  ssize_t n;
  do {
    n = ::write(fd.get(), text, size);
  } while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(size);
}

}  // namespace sandforge::posix
