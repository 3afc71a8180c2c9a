#include "runner/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/kept_lane.hpp"

namespace sandforge::runner {
namespace {

constexpr std::size_t kTurn = 128U << 10;  // bytes of one read

// What is polled: these, then what is looked at beside them.
constexpr std::size_t kSocket = 0, kOver = 1, kBeside = 2;
// One event for each arrival, so that it wakes one reader. No room to write is waited for as long
// as all fits: each frame that the other side takes would wake a reader for it.
constexpr std::uint32_t kArrivals = EPOLLIN | EPOLLRDHUP | EPOLLET;

// Empty when it says that the other side closed.
std::string why_failed(int number) {
  if (number == 0 || number == ECONNRESET || number == EPIPE) return {};
  return std::string("its socket failed: ") + std::strerror(number);
}

}  // namespace

Connection::Connection(posix::Fd socket, Full full)
    : socket_(std::move(socket)),
      over_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      full_(full) {}

bool Connection::send(const wire::Header& header, std::string_view payload) noexcept {
  bool over = true;
  try {
    const std::lock_guard lock(mutex_);
    if (over_) return false;
    if (!queue_.empty()) {
      if (queue_.size() - flushed_ + payload.size() <= kQueueLimit) {
        wire::append_frame(queue_, header, payload);
        return true;
      }
      over_ = true;
      why_ = "it did not read what it was sent";
    } else {
      char head[wire::kHeaderSize];
      wire::store_header(head, header, payload.size());
      std::string_view rest[2] = {{head, sizeof head}, payload};
      while (!rest[0].empty() || !rest[1].empty()) {
        const auto sent = send_some(rest);
        if (sent >= 0) {
          const std::size_t of_head = std::min(static_cast<std::size_t>(sent), rest[0].size());
          rest[0].remove_prefix(of_head);
          rest[1].remove_prefix(static_cast<std::size_t>(sent) - of_head);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
          queue_.append(rest[0]).append(rest[1]);
          watch(EPOLL_CTL_MOD, socket_.get(), kArrivals | EPOLLOUT, kSocket);
          break;
        } else if (errno != EINTR) {
          check_socket(errno);
          failed_ = errno;
          over_ = true;
          break;
        }
      }
      if (!over_) return true;
    }
    over = over_;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    over_ = true;  // half a frame may be out: there is no going on
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto woken = ::write(over_event_.get(), &one, sizeof one);
  return !over;
}

ssize_t Connection::send_some(const std::string_view (&parts)[2]) noexcept {
  iovec pieces[2];
  for (int i = 0; i < 2; ++i)
    pieces[i] = {const_cast<char*>(parts[i].data()), parts[i].size()};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  sending_.store(true, std::memory_order_relaxed);
  const auto sent =
      ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | (full_ == Full::queue ? MSG_DONTWAIT : 0));
  sending_.store(false, std::memory_order_relaxed);
  return sent;
}

// After an error: nobody would ever hear of a runner without its socket, nor it of the host's end.
void Connection::check_socket(int error) const noexcept {
  if (full_ == Full::wait && (error == EBADF || error == ENOTSOCK || error == EINVAL))
    ::_exit(kExitNoSocket);
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
  if (queue_.empty()) return true;
  while (flushed_ < queue_.size()) {
    const auto sent = ::send(socket_.get(), queue_.data() + flushed_, queue_.size() - flushed_,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      flushed_ += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // Never more than the half of it, so that no byte is moved often.
      if (flushed_ > queue_.size() / 2) queue_.erase(0, std::exchange(flushed_, 0));
      return true;
    } else if (errno != EINTR) {
      why = why_failed(errno);
      return false;
    }
  }
  std::string().swap(queue_);
  flushed_ = 0;
  watch(EPOLL_CTL_MOD, socket_.get(), kArrivals, kSocket);
  return true;
}

// ---- Reading

bool Connection::watch(int how, int descriptor, std::uint32_t events, std::size_t number) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  return ::epoll_ctl(poll_.get(), how, descriptor, &event) == 0;
}

void Connection::prepare(std::function<bool(const wire::FrameView&)> frame,
                         std::vector<Beside> beside) {
  frame_ = std::move(frame);
  beside_ = std::move(beside);
  const std::lock_guard lock(mutex_);
  poll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  const std::uint32_t socket_events = queue_.empty() ? kArrivals : kArrivals | EPOLLOUT;
  bool good = poll_ && watch(EPOLL_CTL_ADD, socket_.get(), socket_events, kSocket) &&
              watch(EPOLL_CTL_ADD, over_event_.get(), EPOLLIN, kOver);
  for (std::size_t i = 0; i < beside_.size(); ++i)
    if (beside_[i].descriptor >= 0)
      good = good && watch(EPOLL_CTL_ADD, beside_[i].descriptor, EPOLLIN, kBeside + i);
  if (!good) poll_failed_ = errno;
}

bool Connection::look_at(const epoll_event& event, std::string& why) {
  if (event.data.u64 == kSocket) {
    readable_ = readable_ || (event.events & ~std::uint32_t{EPOLLOUT}) != 0;
    hung_up_ = hung_up_ || (event.events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0;
    const std::lock_guard lock(mutex_);
    return (event.events & EPOLLOUT) == 0 || flush_queue(why);
  }
  if (event.data.u64 < kBeside) return true;
  Beside& beside = beside_[event.data.u64 - kBeside];
  if (beside.descriptor >= 0 && !beside.ready()) {
    watch(EPOLL_CTL_DEL, beside.descriptor, 0, 0);
    beside.descriptor = -1;
  }
  return true;
}

bool Connection::read_some(std::string& why) {
  char* room = buffer_.room(kTurn);
  const auto got = ::recv(socket_.get(), room, kTurn, MSG_DONTWAIT);
  if (got > 0) {
    buffer_.added(static_cast<std::size_t>(got));
    // There is no more, and what comes is an event, but for an end that has shown already.
    readable_ = static_cast<std::size_t>(got) == kTurn || hung_up_ || reads_left_ >= 0;
    return true;
  }
  if (got == 0) return false;
  if (errno == EINTR) return true;
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    readable_ = false;
    return true;
  }
  check_socket(errno);
  why = why_failed(errno);
  return false;
}

bool Connection::frames() {
  for (;;) {
    wire::FrameView view;
    const auto parsed = buffer_.next(view);
    if (parsed == wire::ParseResult::incomplete) return true;
    if (parsed == wire::ParseResult::malformed || !frame_(view)) return false;
  }
}

bool Connection::turn(const epoll_event* events, int count, std::string& why) {
  for (int i = 0; i < count; ++i)
    if (!look_at(events[i], why)) return false;
  {
    const std::lock_guard lock(mutex_);
    if (over_) return false;
  }
  const bool draining = reads_left_ >= 0;
  if (draining && reads_left_-- == 0) return false;
  if (readable_ && !read_some(why)) return false;
  if (frames()) return readable_ || !draining;
  why = kBroken;
  return false;
}

void Connection::end(std::string why) {
  {
    const std::lock_guard lock(mutex_);
    if (why.empty()) why = why_;
    if (why.empty()) why = why_failed(failed_);
    over_ = true;
  }
  reason_ = std::move(why);
  done_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto woken = ::write(over_event_.get(), &one, sizeof one);
}

bool Connection::read() {
  readers_.fetch_add(1);
  for (bool more = true;;) {
    epoll_event events[4];
    const int count = poll_failed_ == 0 ? ::epoll_wait(poll_.get(), events, 4, more ? 0 : -1) : 0;
    const int failed = count < 0 && errno != EINTR ? errno : poll_failed_;
    std::unique_lock lock(readers_mutex_);
    if (done_) return false;
    std::thread::id nobody;
    const bool may_leave =
        readers_.load() > 1 && away_.compare_exchange_strong(nobody, std::this_thread::get_id());
    KeptLane kept(may_leave);
    std::string why = why_failed(failed);
    if (failed != 0) check_socket(failed);
    if (failed != 0 || !turn(events, count, why)) {
      if (may_leave) away_.store({});
      end(std::move(why));
      return true;
    }
    more = readable_;
    lock.unlock();
    // The event of what is left to read has been taken.
    if (!more) kept.run();
    if (may_leave) away_.store({});
  }
}

void Connection::hold_open(std::chrono::milliseconds time) const noexcept {
  // For nothing that arrives: it would wake this thread for each frame.
  pollfd polled{socket_.get(), 0, 0};
  const int limit =
      time.count() == 0 ? -1 : static_cast<int>(std::min<std::int64_t>(time.count(), INT_MAX));
  while (::poll(&polled, 1, limit) < 0 && errno == EINTR) {
  }
  if ((polled.revents & POLLNVAL) != 0) check_socket(EBADF);
  // Over: its readers see to it.
  while (polled.revents != 0 && ::poll(nullptr, 0, limit) < 0) {
  }
}

wire::ParseResult Connection::first(wire::FrameView& frame) {
  for (;;) {
    const auto parsed = buffer_.next(frame);
    if (parsed != wire::ParseResult::incomplete) return parsed;
    const auto got = ::recv(socket_.get(), buffer_.room(kTurn), kTurn, 0);
    if (got > 0) {
      buffer_.added(static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return parsed;
    }
  }
}

}  // namespace sandforge::runner
