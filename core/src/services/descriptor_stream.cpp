#include "services/descriptor_stream.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "plugin/stream_events.hpp"

namespace sandforge::services {
namespace {

namespace asio = boost::asio;
using plugin::Plugin;
using plugin::refuse;

constexpr std::size_t kReadSize = 256U << 10;
constexpr std::size_t kTurn = 1U << 20;  // then others of the lane have theirs

enum class Kind : std::uint8_t { socket, pipe, terminal };

// One buffer per thread, not per stream: on_data borrows it for the call.
std::array<std::uint8_t, kReadSize>& scratch() {
  thread_local auto buffer = std::make_unique<std::array<std::uint8_t, kReadSize>>();
  return *buffer;
}

Error system_error(const char* what, int number) {
  Error error(Status::transport_lost, fmt::format("{}: {}", what, std::strerror(number)));
  error.details.set("errno", number);
  error.may_have_started = true;
  return error;
}

class DescriptorStream final : public Pending,
                               public std::enable_shared_from_this<DescriptorStream> {
 public:
  DescriptorStream(Plugin& plugin, const Lane& lane, int descriptor, Kind kind, int access,
                   std::uint64_t window, const sf_stream_events& events)
      : plugin_(plugin),
        lane_(lane),
        io_(lane.executor(), descriptor),
        kind_(kind),
        readable_(access != O_WRONLY),
        writable_(access != O_RDONLY),
        events_(events),
        credit_(window) {}

  void start() {
    lane_.post([self = shared_from_this()] {
      if (self->readable_) {
        self->read();
      } else {
        self->watch_hangup();
      }
    });
  }

  void grant(std::uint64_t bytes) noexcept {
    if (credit_.grant(bytes)) lane_.post([self = shared_from_this()] { self->resume(); });
  }

  // Also by the Runtime's end.
  void cancel() noexcept override {
    lane_.post([self = shared_from_this()] {
      if (self->open())
        self->finish(Error(Status::cancelled, "the stream was cancelled"), self->count_unread());
    });
  }

  void released() noexcept {
    // From now on nobody can grant: what exceeds the credit is read and dropped.
    released_.store(true);
    lane_.post([self = shared_from_this()] { self->resume(); });
  }

  sf_status write(sf_bytes data, std::size_t* accepted, const sf_error_sink* err) noexcept {
    if (auto good = check_write(); !good) return refuse(err, good.error());
    if (accepted == nullptr || (data.ptr == nullptr && data.len > 0))
      return refuse(err, Error(Status::invalid, "write needs bytes and a place for their count"));
    if (data.len == 0) {
      *accepted = 0;
      return SF_OK;
    }
    std::size_t total = 0;
    while (total < data.len) {
      const ssize_t n = put(data.ptr + total, data.len - total);
      if (n > 0) {
        total += static_cast<std::size_t>(n);
        continue;
      }
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      // What went out before the break counts; the next write tells.
      if (total > 0) break;
      writable_ = false;
      return refuse(err, Error(Status::conflict, "the other end has closed its side"));
    }
    *accepted = total;
    if (total < data.len) watch_writable();
    return SF_OK;
  }

  sf_status shutdown_write(const sf_error_sink* err) noexcept {
    if (!lane_.is_current()) return refuse(err, off_lane());
    if (!open() || !std::exchange(writable_, false)) return SF_OK;
    if (kind_ == Kind::socket) {
      ::shutdown(io_.native_handle(), SHUT_WR);
    } else if (kind_ == Kind::terminal) {
      // The end of file of a terminal is a character; a full one ends with its program anyway.
      const std::uint8_t end_of_file = 4;
      if (put(&end_of_file, 1) != 1 && errno != EAGAIN)
        return refuse(err, system_error("the terminal takes no input", errno));
    } else if (!readable_) {
      lane_.post([self = shared_from_this()] {
        if (self->open()) self->finish(std::nullopt, 0);
      });
    }
    return SF_OK;
  }

 private:
  bool open() const noexcept { return !ended_; }

  static Error off_lane() {
    return Error(Status::invalid, "a [lane] function of a stream was called outside its lane");
  }

  Result<void> check_write() {
    if (!lane_.is_current()) {
      plugin_.faults.report(plugin::Fault::off_lane, "stream.write");
      return off_lane();
    }
    if (!open() || !writable_) return Error(Status::conflict, "the stream takes no more input");
    return {};
  }

  ssize_t put(const std::uint8_t* data, std::size_t size) noexcept {
    return kind_ == Kind::socket ? ::send(io_.native_handle(), data, size, MSG_NOSIGNAL)
                                 : ::write(io_.native_handle(), data, size);
  }

  // There is credit again, or nobody who could give any.
  void resume() {
    if (!open() || !readable_ || turn_posted_) return;
    // A wait that goes on is for input, which is what is wanted now.
    if (!waiting_read_ || std::exchange(waiting_end_, false)) read();
  }

  // Reads while there is credit, input and a turn left.
  void read() {
    std::size_t turn = 0;
    while (open()) {
      const bool dropping = credit_.none() && released_.load();
      if (credit_.none() && !dropping) return watch_end();
      const std::size_t want = dropping ? kReadSize : credit_.of(kReadSize);
      const ssize_t n = ::read(io_.native_handle(), scratch().data(), want);
      if (n > 0) {
        take(static_cast<std::size_t>(n), dropping);
        turn += static_cast<std::size_t>(n);
        if (turn >= kTurn) return post_turn();
        // A short read emptied it. The wait looks anew, also for the end, so that nothing is
        // missed.
        if (static_cast<std::size_t>(n) < want && !credit_.none()) return watch_read();
        continue;
      }
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return watch_read();
      // A terminal whose last program has gone answers EIO.
      if (n == 0 || (errno == EIO && kind_ == Kind::terminal)) return finish(std::nullopt, 0);
      return finish(system_error("reading failed", errno), 0);
    }
  }

  void post_turn() {
    turn_posted_ = true;
    lane_.post([self = shared_from_this()] {
      self->turn_posted_ = false;
      self->read();
    });
  }

  void take(std::size_t size, bool dropping) {
    if (dropping) {
      dropped_ += size;
      return;
    }
    credit_.spend(size);
    delivered_ += size;
    plugin::call_value(plugin_, "on_data", events_.on_data, events_.ctx, SF_CHANNEL_DATA,
                       std::uint32_t{0}, sf_bytes{scratch().data(), size});
  }

  void watch_read() {
    if (std::exchange(waiting_read_, true)) return;
    io_.async_wait(asio::posix::stream_descriptor::wait_read,
                   [self = shared_from_this()](const boost::system::error_code&) {
                     self->waiting_read_ = false;
                     if (!self->open()) return;
                     if (std::exchange(self->waiting_end_, false)) return self->look_for_end();
                     self->read();
                   });
  }

  // Without credit nothing may be read, but the end must still be seen.
  void watch_end() {
    waiting_end_ = true;
    watch_read();
  }

  void look_for_end() {
    if (!credit_.none() || released_.load()) return read();
    // Input is there: it waits for a grant.
    if (pending_input()) return;
    pollfd state{io_.native_handle(), POLLIN, 0};
    if (::poll(&state, 1, 0) == 1) return finish(std::nullopt, 0);
    watch_end();
  }

  bool pending_input() {
    if (kind_ == Kind::socket) {
      std::uint8_t byte = 0;
      return ::recv(io_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    }
    pollfd state{io_.native_handle(), POLLIN, 0};
    return ::poll(&state, 1, 0) == 1 && (state.revents & POLLIN) != 0;
  }

  std::uint64_t count_unread() {
    if (!readable_) return 0;
    std::uint64_t count = 0;
    // Bounded: a writer that goes on must not keep a cancelled stream alive.
    for (int i = 0; i < 16; ++i) {
      const ssize_t n = ::read(io_.native_handle(), scratch().data(), kReadSize);
      if (n <= 0) break;
      count += static_cast<std::uint64_t>(n);
    }
    return count;
  }

  void watch_writable() {
    if (std::exchange(waiting_write_, true)) return;
    io_.async_wait(asio::posix::stream_descriptor::wait_write,
                   [self = shared_from_this()](const boost::system::error_code&) {
                     self->waiting_write_ = false;
                     if (!self->open()) return;
                     plugin::call_value(self->plugin_, "on_writable", self->events_.on_writable,
                                        self->events_.ctx);
                   });
  }

  // A pipe that is only written ends when its reader goes.
  void watch_hangup() {
    io_.async_wait(asio::posix::stream_descriptor::wait_error,
                   [self = shared_from_this()](const boost::system::error_code& ec) {
                     if (!self->open() || ec) return;
                     self->writable_ = false;
                     self->finish(std::nullopt, 0);
                   });
  }

  void finish(std::optional<Error> error, std::uint64_t unread) {
    ended_ = true;
    boost::system::error_code ignored;  // the descriptor is gone either way
    io_.close(ignored);
    plugin::call_stream_done(plugin_, "stream.done", events_, error ? &*error : nullptr, delivered_,
                             dropped_ + unread);
  }

  Plugin& plugin_;
  const Lane lane_;
  asio::posix::stream_descriptor io_;
  const Kind kind_;
  const bool readable_;
  bool writable_;
  const sf_stream_events events_;
  plugin::Credit credit_;
  std::atomic<bool> released_{false};
  std::uint64_t delivered_ = 0;
  std::uint64_t dropped_ = 0;
  bool waiting_read_ = false;
  bool waiting_end_ = false;
  bool waiting_write_ = false;
  bool turn_posted_ = false;
  bool ended_ = false;
};

// The plugin's handle. The stream itself lives on until done.
struct StreamHandle : sf_stream {
  explicit StreamHandle(std::shared_ptr<DescriptorStream> s);
  const std::shared_ptr<DescriptorStream> stream;
};

DescriptorStream& of(sf_stream* self) noexcept {
  return *static_cast<StreamHandle*>(self)->stream;
}

void stream_grant(sf_stream* self, std::uint64_t bytes) noexcept {
  of(self).grant(bytes);
}
sf_status stream_write(sf_stream* self, sf_bytes data, std::uint32_t, std::size_t* accepted,
                       const sf_error_sink* err) noexcept {
  return of(self).write(data, accepted, err);
}
sf_status stream_shutdown(sf_stream* self, const sf_error_sink* err) noexcept {
  return of(self).shutdown_write(err);
}
void stream_cancel(sf_stream* self) noexcept {
  of(self).cancel();
}
void stream_release(sf_stream* self) noexcept {
  of(self).released();
  delete static_cast<StreamHandle*>(self);
}

StreamHandle::StreamHandle(std::shared_ptr<DescriptorStream> s) : stream(std::move(s)) {
  static const sf_stream_vtbl table = {sizeof(sf_stream_vtbl), &stream_grant,  &stream_write,
                                       &stream_shutdown,       &stream_cancel, &stream_release};
  vtbl = &table;
}

Result<Kind> kind_of(int descriptor) {
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0)
    return Error(Status::invalid, "there is no such descriptor");
  if (S_ISSOCK(status.st_mode)) return Kind::socket;
  if (S_ISFIFO(status.st_mode)) return Kind::pipe;
  if (S_ISCHR(status.st_mode) && ::isatty(descriptor) == 1) return Kind::terminal;
  return Error(Status::invalid, "only sockets, pipes and terminals can be streams");
}

}  // namespace

Result<void> adopt_descriptor(Plugin& plugin, Runtime& runtime, Lane lane, int descriptor,
                              std::uint64_t window, const sf_stream_events& events,
                              sf_stream** out) {
  const auto copy = plugin::copy_stream_events(&events);
  if (!copy) return copy.error();
  auto kind = kind_of(descriptor);
  if (!kind) return std::move(kind).error();
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
    return system_error("the descriptor cannot be taken over", errno);
  std::shared_ptr<DescriptorStream> stream;
  try {
    stream = std::make_shared<DescriptorStream>(plugin, lane, descriptor, *kind, flags & O_ACCMODE,
                                                window, *copy);
  } catch (const boost::system::system_error& e) {
    return Error(Status::invalid,
                 fmt::format("the descriptor cannot be watched: {}", e.code().message()));
  }
  runtime.track(stream);
  *out = new StreamHandle(stream);
  stream->start();
  return {};
}

}  // namespace sandforge::services
