#include "runner/connection.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sandforge::runner {
namespace {

constexpr std::size_t kTurn = 128U << 10;  // bytes of one read

// Empty when it says that the other side closed.
std::string why_failed(int number) {
  if (number == 0 || number == ECONNRESET || number == EPIPE) return {};
  return std::string("its socket failed: ") + std::strerror(number);
}

}  // namespace

Connection::Connection(posix::Fd socket, Full full)
    : socket_(std::move(socket)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), full_(full) {}

bool Connection::send(const wire::Header& header, std::string_view payload) noexcept {
  bool over = true;
  try {
    const std::lock_guard lock(mutex_);
    if (over_) return false;
    if (!queue_.empty()) {
      if (queue_.size() + payload.size() <= kQueueLimit) {
        wire::append_frame(queue_, header, payload);
        return true;
      }
      over_ = true;
      why_ = "it did not read what it was sent";
    } else {
      scratch_.clear();
      wire::append_frame(scratch_, header, payload);
      std::string_view rest = scratch_;
      while (!rest.empty()) {
        sending_.store(true, std::memory_order_relaxed);
        const auto sent = ::send(socket_.get(), rest.data(), rest.size(),
                                 MSG_NOSIGNAL | (full_ == Full::queue ? MSG_DONTWAIT : 0));
        sending_.store(false, std::memory_order_relaxed);
        if (sent > 0) {
          rest.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
          queue_.assign(rest);
          break;
        } else if (errno != EINTR) {
          check_socket();
          failed_ = errno;
          over_ = true;
          break;
        }
      }
      if (scratch_.capacity() > kTurn) std::string().swap(scratch_);
      if (queue_.empty() && !over_) return true;
    }
    over = over_;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    over_ = true;  // half a frame may be out: there is no going on
  }
  const std::uint64_t one = 1;
  // Its counter cannot be full, and the reader looks at everything anyway once it is woken.
  [[maybe_unused]] const auto woken = ::write(wake_.get(), &one, sizeof one);
  return !over;
}

// After an error: nobody would ever hear of a runner without its socket, nor it of the host's end.
void Connection::check_socket() const noexcept {
  if (full_ == Full::wait && (errno == EBADF || errno == ENOTSOCK)) ::_exit(kExitNoSocket);
}

void Connection::close(const char* why) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!over_) why_ = why;
    over_ = true;
  }
  ::shutdown(socket_.get(), SHUT_RDWR);
}

bool Connection::flush_queue(std::string& why) {
  while (!queue_.empty()) {
    const auto sent =
        ::send(socket_.get(), queue_.data(), queue_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      queue_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return true;
    } else if (errno != EINTR) {
      why = why_failed(errno);
      return false;
    }
  }
  return true;
}

// Until something can be read from the socket.
bool Connection::wait(std::vector<Beside>& beside, std::string& why) {
  for (;;) {
    std::vector<pollfd> polled = {{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    for (const Beside& each : beside)
      polled.push_back({each.descriptor, POLLIN, 0});
    {
      const std::lock_guard lock(mutex_);
      if (over_) return false;
      if (!queue_.empty()) polled[0].events |= POLLOUT;
    }
    const bool draining = reads_left_ >= 0;
    if (::poll(polled.data(), polled.size(), draining ? 0 : -1) < 0 && errno != EINTR) {
      why = why_failed(errno);
      return false;
    }
    if (polled[1].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto taken = ::read(wake_.get(), &count, sizeof count);
    }
    for (std::size_t i = 0; i < beside.size(); ++i)
      if (polled[i + 2].revents != 0 && !beside[i].ready()) beside[i].descriptor = -1;
    if ((polled[0].revents & POLLOUT) != 0) {
      const std::lock_guard lock(mutex_);
      if (!flush_queue(why)) return false;
    }
    const bool readable = (polled[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    if (draining && (!readable || reads_left_-- == 0)) return false;
    if (readable) return true;
  }
}

bool Connection::read_some(std::string& why) {
  for (;;) {
    char* room = buffer_.room(kTurn);
    const auto got = ::recv(socket_.get(), room, kTurn, 0);
    if (got > 0) {
      buffer_.added(static_cast<std::size_t>(got));
      return true;
    }
    if (got == 0) return false;
    if (errno == EINTR) continue;
    check_socket();
    why = why_failed(errno);
    return false;
  }
}

std::string Connection::run(const std::function<bool(const wire::FrameView&)>& frame,
                            std::vector<Beside> beside) {
  std::string why;
  for (;;) {
    wire::FrameView view;
    const auto parsed = buffer_.next(view);
    if (parsed == wire::ParseResult::malformed ||
        (parsed == wire::ParseResult::frame && !frame(view))) {
      why = kBroken;
      break;
    }
    if (parsed == wire::ParseResult::frame) continue;
    // A side that waits when the socket is full has no queue, so nothing else to look at.
    if (full_ == Full::queue && !wait(beside, why)) break;
    if (!read_some(why)) break;
  }
  const std::lock_guard lock(mutex_);
  if (why.empty()) why = why_;
  if (why.empty()) why = why_failed(failed_);
  over_ = true;
  return why;
}

wire::ParseResult Connection::first(wire::FrameView& frame) {
  std::string why;
  for (;;) {
    const auto parsed = buffer_.next(frame);
    if (parsed != wire::ParseResult::incomplete || !read_some(why)) return parsed;
  }
}

}  // namespace sandforge::runner
