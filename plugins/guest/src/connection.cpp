#include "connection.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "process.hpp"
#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

constexpr std::size_t kReceiveSize = 4 * (wire::kMaxPayload + wire::kHeaderSize);
constexpr std::size_t kTurnSize = 1024 * 1024;
constexpr int kTurnSpawns = 4;  // each blocks us until its exec: others wait no longer than this
constexpr std::size_t kBacklogLimit = 16 * 1024 * 1024;  // a host that reads nothing is cut off
constexpr std::size_t kPauseSize = 1024 * 1024;  // of answers that wait: no further request is read
constexpr int kBatchFrames = 8;
constexpr int kSilentPings = 4;
constexpr std::int64_t kLazyMs = 1;
// EPOLLOUT only while the socket is full: else each read of the host would wake us.
constexpr std::uint32_t kReadEvents = EPOLLIN | EPOLLRDHUP;

}  // namespace

Connection::Connection(Supervisor& supervisor, posix::Fd socket)
    : supervisor_(supervisor), socket_(std::move(socket)), in_(kReceiveSize) {}

Connection::~Connection() {
  supervisor_.loop().cancel(ping_);
}

bool Connection::start() {
  // Best effort: larger buffers mean fewer wake-ups.
  const int size = 1024 * 1024;
  if (::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0)
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  if (!posix::set_nonblocking(socket_.get(), true)) return false;
  if (!supervisor_.loop().watch(socket_.get(), kReadEvents, *this)) return false;
  check_silence();
  return true;
}

void Connection::check_silence() {
  const std::int64_t interval = supervisor_.options().ping_ms;
  if (interval <= 0 || closed_) return;
  ping_ = supervisor_.loop().at(supervisor_.loop().now() + interval, [this] {
    ping_ = {};
    silent_ = std::exchange(heard_, false) ? 0 : silent_ + 1;
    if (silent_ >= kSilentPings) {
      close("the host stayed silent");
      return;
    }
    if (silent_ > 0 && greeted_) send(wire::FrameType::guest_ping, 0);
    check_silence();
  });
}

void Connection::on_ready(std::uint32_t events) {
  if (closed_) return;
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) readable_ = true;
  if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) hung_up_ = true;
  if ((events & EPOLLOUT) && !std::exchange(writable_, true)) {
    supervisor_.loop().change(socket_.get(), kReadEvents, *this);
    flush();
  }
  read_input();
}

void Connection::close(const char* reason) {
  if (std::exchange(closed_, true)) return;
  if (reason) std::fprintf(stderr, "sandforge-guest: connection closed: %s\n", reason);
  supervisor_.loop().cancel(ping_);
  supervisor_.loop().cancel(lazy_);
  supervisor_.loop().forget(socket_.get());
  socket_.reset();
  turns_.clear();
  drop_files();
  supervisor_.connection_closed(*this);
}

std::vector<Attachment*> Connection::attachments() const {
  std::vector<Attachment*> out;
  for (const auto& [id, a] : channels_)
    out.push_back(a.get());
  return out;
}

void Connection::read_input() {
  std::size_t budget = kTurnSize;
  spawns_left_ = kTurnSpawns;
  // What the last turn left.
  if (std::exchange(parse_left_, false) && !parse_input()) return;
  while (readable_ && !closed_ && !paused_ && !parse_left_ && budget > 0) {
    if (in_begin_ == in_end_) in_begin_ = in_end_ = 0;
    if (in_.size() - in_end_ < wire::kMaxPayload) {
      std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_);
      in_end_ -= std::exchange(in_begin_, 0);
    }
    const ssize_t n = ::recv(socket_.get(), in_.data() + in_end_, in_.size() - in_end_, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      readable_ = false;
      return;
    }
    if (n <= 0) {
      close(nullptr);
      return;
    }
    heard_ = true;
    in_end_ += static_cast<std::size_t>(n);
    budget -= std::min(budget, static_cast<std::size_t>(n));
    // A short read emptied the socket, and what comes later wakes us, except for the end.
    if (in_end_ < in_.size() && !hung_up_) readable_ = false;
    if (!parse_input()) return;
  }
  if ((readable_ || parse_left_) && !closed_ && !paused_ && !std::exchange(read_queued_, true))
    supervisor_.loop().later([this] {
      read_queued_ = false;
      if (!closed_) read_input();
    });
}

// True: goes on later. A burst of commands is started in turns, so that those that run are served
// meanwhile, and those that end make room for the next.
bool Connection::parse_input() {
  while (!closed_) {
    if (congested()) return false;
    parse_left_ = spawns_left_ == 0;
    if (parse_left_) return true;
    wire::FrameView f;
    switch (wire::parse_frame({in_.data() + in_begin_, in_end_ - in_begin_}, f)) {
      case wire::ParseResult::incomplete:
        return true;
      case wire::ParseResult::malformed:
        return broken("malformed frame");
      case wire::ParseResult::frame:
        break;
    }
    in_begin_ += wire::kHeaderSize + f.payload.size();
    if (!frame(f)) return false;
  }
  return false;
}

// A host may ask for more than it reads, by accident or not: its answers must not pile up.
bool Connection::congested() {
  if (paused_) return true;
  if (out_.size() - out_begin_ <= kPauseSize) return false;
  if (writable_ && flush_queued()) return false;
  paused_ = out_.size() - out_begin_ > kPauseSize;
  return paused_ || closed_;
}

void Connection::resume() {
  if (!std::exchange(paused_, false)) return;
  parse_left_ = true;
  supervisor_.loop().later([this] {
    if (!closed_) read_input();
  });
}

bool Connection::broken(const char* reason) {
  close(reason);
  return false;
}

void Connection::send(wire::FrameType type, std::uint64_t channel, std::uint64_t value,
                      std::string_view payload) {
  if (closed_) return;
  if (!wire::append_message(out_, type, channel, value, payload)) {
    send_error(channel, wire::ErrorCode::limit, "the answer is too large");
    return;
  }
  flush_later();
}

void Connection::send_lazily(wire::FrameType type, std::uint64_t channel,
                             std::string_view payload) {
  if (closed_) return;
  wire::append_message(out_, type, channel, 0, payload);
  if (flush_queued_ || lazy_.second != 0) return;
  lazy_ = supervisor_.loop().at(supervisor_.loop().now() + kLazyMs, [this] {
    lazy_ = {};
    flush();
  });
}

void Connection::send_error(std::uint64_t channel, wire::ErrorCode code, std::string message,
                            int error_number) {
  wire::ErrorInfo error;
  error.code = code;
  error.error_number = error_number;
  // Paths in it come from the host and may be long.
  error.message = message.size() > 4096 ? message.substr(0, 4096) : std::move(message);
  send_message(wire::FrameType::error, channel, error);
}

void Connection::wants_output(Attachment& a) {
  if (closed_ || a.closed || a.queued || a.credit == 0) return;
  a.queued = true;
  turns_.push_back(&a);
  flush_later();
}

void Connection::drop(Attachment& a) {
  supervisor_.touch();
  a.closed = true;
  turns_.erase(std::remove(turns_.begin(), turns_.end(), &a), turns_.end());
  const auto found = channels_.find(a.channel);
  if (found == channels_.end() || found->second.get() != &a) return;
  supervisor_.bury(std::shared_ptr<Attachment>(std::move(found->second)));
  channels_.erase(found);
}

void Connection::flush_later() {
  if (std::exchange(flush_queued_, true)) return;
  supervisor_.loop().later([this] {
    flush_queued_ = false;
    flush();
  });
}

void Connection::socket_full() {
  if (std::exchange(writable_, false))
    supervisor_.loop().change(socket_.get(), kReadEvents | EPOLLOUT, *this);
}

bool Connection::flush_queued() {
  supervisor_.loop().cancel(lazy_);
  while (out_begin_ < out_.size()) {
    const ssize_t n =
        ::send(socket_.get(), out_.data() + out_begin_, out_.size() - out_begin_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      socket_full();
      if (out_.size() - out_begin_ > kBacklogLimit) close("the host does not read");
      return false;
    }
    if (n < 0) {
      close(nullptr);
      return false;
    }
    out_begin_ += static_cast<std::size_t>(n);
  }
  out_.clear();
  // An answer that was large once need not be paid for ever after.
  if (out_.capacity() > kPauseSize) out_.shrink_to_fit();
  out_begin_ = 0;
  resume();
  if (!file_turns_.empty()) files_later();
  return true;
}

void Connection::flush() {
  while (!closed_ && writable_) {
    if (!flush_queued() || turns_.empty()) return;
    Attachment* a = turns_.front();
    turns_.pop_front();
    a->queued = false;
    if (!send_batch(*a)) return;
  }
}

namespace {

// Output of one channel that goes out by one call, straight from its log.
struct Batch {
  struct Frame {
    posix::OutputLog::Position end;
    posix::OutputLog::Slice slice;
  };

  void add(std::uint64_t channel, posix::OutputLog::Position end,
           const posix::OutputLog::Slice& slice) {
    wire::Header header;
    header.length = static_cast<std::uint32_t>(slice.size);
    header.type = static_cast<std::uint8_t>(wire::FrameType::output);
    header.flags = static_cast<std::uint8_t>(slice.stream);
    header.channel = channel;
    header.value = slice.offset;
    wire::encode_header(header, headers[count]);
    parts[2 * count] = {headers[count], wire::kHeaderSize};
    parts[2 * count + 1] = {const_cast<char*>(slice.data), slice.size};
    frames[count] = {end, slice};
    size += wire::kHeaderSize + slice.size;
    ++count;
  }

  char headers[kBatchFrames][wire::kHeaderSize];
  struct iovec parts[2 * kBatchFrames];
  Frame frames[kBatchFrames];
  int count = 0;
  std::size_t size = 0;
};

// Fills the batch with what the channel may get. Where in the log that ends.
posix::OutputLog::Position gather(const Attachment& a, const posix::OutputLog& log, Batch& batch) {
  posix::OutputLog::Position at = a.at;
  std::uint64_t credit = a.credit;
  std::uint64_t next[2] = {a.next[0], a.next[1]};
  while (batch.count < kBatchFrames && credit > 0) {
    posix::OutputLog::Slice slice;
    at = std::max(at, log.begin());
    if (a.bounded && at >= a.until) break;
    std::uint64_t want = std::min<std::uint64_t>(wire::kMaxPayload, credit);
    if (a.bounded) want = std::min<std::uint64_t>(want, a.until - at);
    if (!log.look(at, static_cast<std::size_t>(want), slice)) break;
    at += slice.size;
    if (slice.offset + slice.size <= next[slice.stream]) continue;
    if (slice.offset < next[slice.stream]) {
      const auto known = static_cast<std::size_t>(next[slice.stream] - slice.offset);
      slice.offset += known;
      slice.data += known;
      slice.size -= known;
    }
    next[slice.stream] = slice.offset + slice.size;
    credit -= slice.size;
    batch.add(a.channel, at, slice);
  }
  return at;
}

// Notes what the socket took. The rest of a frame that it cut is copied to `rest`, so that the log
// owes nothing to the socket.
void settle(Attachment& a, const Batch& batch, std::size_t sent, std::string& rest) {
  for (int i = 0; i < batch.count && sent > 0; ++i) {
    const posix::OutputLog::Slice& slice = batch.frames[i].slice;
    const std::size_t whole = wire::kHeaderSize + slice.size;
    if (sent < whole) {
      if (sent < wire::kHeaderSize) rest.append(batch.headers[i] + sent, wire::kHeaderSize - sent);
      const std::size_t done = sent > wire::kHeaderSize ? sent - wire::kHeaderSize : 0;
      rest.append(slice.data + done, slice.size - done);
    }
    sent -= std::min(sent, whole);
    a.at = batch.frames[i].end;
    a.credit -= slice.size;
    a.next[slice.stream] = slice.offset + slice.size;
    a.delivered[slice.stream] += slice.size;
  }
}

}  // namespace

// Sends frames of one channel straight from its log. False when the socket takes no more.
bool Connection::send_batch(Attachment& a) {
  Process* process = a.process;
  if (!process || a.closed) return true;
  const posix::OutputLog& log = process->log();
  Batch batch;
  const auto at = gather(a, log, batch);
  if (batch.count == 0) {
    // Only bytes that the channel has already.
    a.at = std::max(a.at, at);
    process->delivered(a);
    return true;
  }
  struct msghdr message = {};
  message.msg_iov = batch.parts;
  message.msg_iovlen = 2 * static_cast<std::size_t>(batch.count);
  ssize_t n;
  do {
    n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno != EAGAIN) {
    close(nullptr);
    return false;
  }
  const auto sent = static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  const bool full = sent < batch.size;
  if (full) socket_full();
  settle(a, batch, sent, out_);
  if (std::max(a.at, log.begin()) < (a.bounded ? a.until : log.end())) wants_output(a);
  process->delivered(a);
  return !full;
}

}  // namespace sandforge::guest
