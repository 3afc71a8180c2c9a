#include "daemon.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "serve.hpp"

namespace sandforge::guest {
namespace {

bool reports_ready(int fd) {
  char byte;
  ssize_t n;
  do {
    n = ::read(fd, &byte, 1);
  } while (n < 0 && errno == EINTR);
  return n == 1;
}

int exit_code_of(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int serve_in_background(ServeOptions options) {
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) {
    std::fprintf(stderr, "sandforge-guest: cannot make a pipe: %s\n", std::strerror(errno));
    return 1;
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    std::fprintf(stderr, "sandforge-guest: cannot fork: %s\n", std::strerror(errno));
    return 1;
  }
  if (pid == 0) {
    ::close(ready[0]);
    ::setsid();
    options.ready_fd = ready[1];
    ::_exit(serve(options));
  }
  ::close(ready[1]);
  return reports_ready(ready[0]) ? 0 : exit_code_of(pid);
}

}  // namespace sandforge::guest
