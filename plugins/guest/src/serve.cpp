#include "serve.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "listener.hpp"
#include "loop.hpp"
#include "sandforge/posix/system.hpp"
#include "sandforge/posix/tree.hpp"
#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

class Signals final : public Source {
 public:
  explicit Signals(Supervisor& supervisor) : supervisor_(supervisor) {}

  bool start() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP})
      ::sigaddset(&set, signal);
    if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return false;
    fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    return fd_ && supervisor_.loop().watch(fd_.get(), EPOLLIN, *this);
  }

  void on_ready(std::uint32_t) override {
    struct signalfd_siginfo info[16];
    bool child = false, end = false;
    for (;;) {
      const ssize_t n = ::read(fd_.get(), info, sizeof info);
      if (n <= 0) break;
      for (std::size_t i = 0; i < static_cast<std::size_t>(n) / sizeof info[0]; ++i)
        (info[i].ssi_signo == SIGCHLD ? child : end) = true;
      if (static_cast<std::size_t>(n) < sizeof info) break;
    }
    if (child) supervisor_.reap();
    if (end) supervisor_.stop_all(nullptr, 0, supervisor_.options().grace_ms, true);
  }

 private:
  Supervisor& supervisor_;
  posix::Fd fd_;
};

int fail(const char* what, const std::string& detail) {
  std::fprintf(stderr, "sandforge-guest: %s: %s\n", what, detail.c_str());
  return 1;
}

// Descriptors 0 to 2 must be taken, else a pipe of a command could become one of them.
void fill_standard_descriptors() {
  int fd;
  do {
    fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (fd >= 0 && fd < 3);
  if (fd >= 3) ::close(fd);
}

}  // namespace

int serve(const ServeOptions& options) {
  fill_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);
  // Its memory holds the environment of the session.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  EventLoop loop;
  if (!loop.valid()) return fail("cannot wait for events", std::strerror(errno));
  const bool subreaper = posix::become_subreaper();
  if (!subreaper && !posix::call_is_absent(errno))
    return fail("cannot become a subreaper", std::strerror(errno));
  Supervisor supervisor(loop, options, subreaper);
  Signals signals(supervisor);
  if (!signals.start()) return fail("cannot take signals", std::strerror(errno));

  Listener listener(supervisor);
  if (options.fd >= 0) {
    posix::Fd socket(options.fd);
    ::fcntl(options.fd, F_SETFD, FD_CLOEXEC);
    supervisor.make_group();
    if (!supervisor.add_connection(std::move(socket)))
      return fail("cannot use the inherited socket", std::strerror(errno));
  } else {
    std::string why;
    const ListenResult result = listener.start(options.socket, why);
    if (result == ListenResult::taken) {
      fail("another guest serves this socket", options.socket);
      return 3;
    }
    if (result != ListenResult::listening) return fail("cannot listen", why);
  }
  std::string why;
  if (!supervisor.start_main(why)) {
    fail("cannot run the command", why);
    return 127;
  }
  if (options.ready_fd >= 0) {
    const posix::Fd ready(options.ready_fd);
    if (::write(ready.get(), "\n", 1) != 1)
      return fail("cannot report readiness", std::strerror(errno));
  }
  return loop.run();
}

}  // namespace sandforge::guest
