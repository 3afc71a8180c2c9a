#include "relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <vector>

#include "listener.hpp"
#include "sandforge/posix/system.hpp"

namespace sandforge::guest {
namespace {

constexpr std::size_t kBufferSize = 256 * 1024;
constexpr std::int64_t kRetryMs = 20;

// One direction. Reads only while it has room, writes only what it has, blocks on neither.
class Direction {
 public:
  Direction(int from, int to) : from_(from), to_(to), buffer_(kBufferSize) {}

  bool wants_read() const { return !ended_ && end_ < buffer_.size(); }
  bool wants_write() const { return begin_ < end_; }
  bool finished() const { return ended_ && begin_ == end_; }
  bool broken() const { return broken_; }

  void read() {
    const ssize_t n = ::read(from_, buffer_.data() + end_, buffer_.size() - end_);
    if (n > 0)
      end_ += static_cast<std::size_t>(n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
      ended_ = true;
  }
  // True when something was written.
  bool write() {
    const ssize_t n = ::write(to_, buffer_.data() + begin_, end_ - begin_);
    if (n < 0 && errno != EAGAIN && errno != EINTR) broken_ = true;
    if (n <= 0) return false;
    begin_ += static_cast<std::size_t>(n);
    if (begin_ == end_) begin_ = end_ = 0;
    return true;
  }

 private:
  int from_;
  int to_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  bool ended_ = false;
  bool broken_ = false;
};

posix::Fd connect_within(const RelayOptions& options) {
  const std::int64_t until = posix::monotonic_ms() + options.wait_ms;
  for (;;) {
    posix::Fd socket = connect_to(options.socket);
    if (socket || posix::monotonic_ms() >= until) return socket;
    ::poll(nullptr, 0, static_cast<int>(kRetryMs));
  }
}

int bridge(int socket, std::int64_t write_deadline_ms) {
  Direction in(STDIN_FILENO, socket), out(socket, STDOUT_FILENO);
  std::int64_t progress = posix::monotonic_ms();
  bool told_end = false;
  for (;;) {
    struct pollfd fds[4] = {{in.wants_read() ? STDIN_FILENO : -1, POLLIN, 0},
                            {in.wants_write() ? socket : -1, POLLOUT, 0},
                            {out.wants_read() ? socket : -1, POLLIN, 0},
                            {out.wants_write() ? STDOUT_FILENO : -1, POLLOUT, 0}};
    int timeout = -1;
    if (out.wants_write())
      timeout = static_cast<int>(std::clamp<std::int64_t>(
          progress + write_deadline_ms - posix::monotonic_ms(), 0, 1 << 30));
    if (::poll(fds, 4, timeout) < 0 && errno != EINTR) return 1;
    if (fds[0].revents) in.read();
    if (fds[1].revents) in.write();
    if (fds[2].revents) out.read();
    const std::int64_t now = posix::monotonic_ms();
    if (!out.wants_write() || (fds[3].revents && out.write()) || !out.wants_write())
      progress = now;
    else if (now - progress >= write_deadline_ms)
      return 4;
    if (out.finished() || out.broken() || in.broken()) return 0;
    // The host is gone: the guest answers what is under way, then closes.
    if (in.finished() && !std::exchange(told_end, true)) ::shutdown(socket, SHUT_WR);
  }
}

}  // namespace

int relay(const RelayOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  const posix::Fd socket = connect_within(options);
  if (!socket) {
    std::fprintf(stderr, "sandforge-guest: nobody serves %s\n", options.socket.c_str());
    return 1;
  }
  // Standard input and output may be shared with others, who do not expect them to change.
  const int in_flags = ::fcntl(STDIN_FILENO, F_GETFL);
  const int out_flags = ::fcntl(STDOUT_FILENO, F_GETFL);
  posix::set_nonblocking(STDIN_FILENO, true);
  posix::set_nonblocking(STDOUT_FILENO, true);
  posix::set_nonblocking(socket.get(), true);
  const int code = bridge(socket.get(), options.write_deadline_ms);
  if (out_flags >= 0) ::fcntl(STDOUT_FILENO, F_SETFL, out_flags);
  if (in_flags >= 0) ::fcntl(STDIN_FILENO, F_SETFL, in_flags);
  return code;
}

}  // namespace sandforge::guest
