// Output, input and channels of a process.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <limits>

#include "connection.hpp"
#include "process.hpp"
#include "sandforge/posix/pty.hpp"
#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

constexpr std::size_t kReadSize = 128 * 1024;
constexpr std::size_t kTurnSize = 1024 * 1024;  // read from one process before others have a turn
constexpr std::size_t kFlushSize = 64 * 1024;   // sent at once and not at the end of the turn
constexpr std::size_t kBusyRead = 32 * 1024;    // a writer of this speed gets a larger pipe
constexpr int kPipeSize = 1024 * 1024;
constexpr std::uint64_t kInputWindow = 256 * 1024;
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
constexpr char kEndOfTransmission = 4;

}  // namespace

void Process::Output::on_ready(std::uint32_t events) {
  readable = true;
  if (events & (EPOLLHUP | EPOLLERR)) hung_up = true;
  process->pump();
  process->check_over();
}

void Process::close_output(Output& out) {
  if (!out.fd) return;
  // The input of a terminal is another descriptor of the same file.
  if (request_.tty) supervisor_.loop().forget(out.fd.get());
  out.fd.reset();
}

std::uint64_t Process::allowance() const {
  if (over_) return kUnlimited;
  std::uint64_t least = kUnlimited;
  for (const Attachment* a : attachments_) {
    if (!a->hold_back) continue;
    const std::uint64_t unsent = log_.end() - std::max(a->at, log_.begin());
    least = std::min(least, a->credit > unsent ? a->credit - unsent : 0);
  }
  return least;
}

posix::OutputLog::Position Process::keep_from() const {
  posix::OutputLog::Position keep = log_.end();
  for (const Attachment* a : attachments_)
    if (a->hold_back) keep = std::min(keep, std::max(a->at, log_.begin()));
  return keep;
}

bool Process::at_end_of_file(const Output& out) const {
  int waiting = 0;
  return out.hung_up && ::ioctl(out.fd.get(), FIONREAD, &waiting) == 0 && waiting == 0;
}

bool Process::read_some(Output& out, std::size_t& budget) {
  if (!out.fd || !out.readable) return false;
  const std::uint64_t allowed = allowance();
  if (allowed == 0) {
    // Even without credit the end of the output is no secret.
    if (at_end_of_file(out)) {
      close_output(out);
      return true;
    }
    held_ = true;
    return false;
  }
  const std::size_t step = std::clamp(log_.capacity(), posix::OutputLog::kMinimum, kReadSize);
  const auto want = static_cast<std::size_t>(std::min<std::uint64_t>({allowed, step, budget}));
  struct iovec areas[2];
  const std::size_t room = log_.prepare(want, keep_from(), areas);
  if (room == 0) {
    held_ = true;
    return false;
  }
  const ssize_t n = ::readv(out.fd.get(), areas, areas[1].iov_len > 0 ? 2 : 1);
  if (n > 0) {
    const auto size = static_cast<std::size_t>(n);
    log_.commit(out.stream, size);
    drain_.data(supervisor_.loop().now());
    budget -= size;
    // After a hang-up no further edge comes: read on until the end shows.
    if (size < room && !out.hung_up) out.readable = false;
    if (size >= kBusyRead && !out.enlarged && !request_.tty) {
      out.enlarged = true;
      ::fcntl(out.fd.get(), F_SETPIPE_SZ, kPipeSize);
    }
    return true;
  }
  if (n < 0 && errno == EINTR) return true;
  if (n < 0 && errno == EAGAIN) {
    out.readable = false;
    return false;
  }
  // End of file; a terminal whose last holder is gone says EIO.
  close_output(out);
  return true;
}

void Process::pump() {
  held_ = false;
  std::size_t budget = kTurnSize;
  bool progress = true;
  while (progress && budget > 0) {
    progress = false;
    for (Output& out : outputs_)
      if (budget > 0) progress |= read_some(out, budget);
    offer();
  }
  watch_credit();
  if (budget == 0) pump_later();
}

void Process::pump_later() {
  if (std::exchange(pump_queued_, true)) return;
  supervisor_.loop().later([this] {
    pump_queued_ = false;
    pump();
    check_over();
  });
}

void Process::offer() {
  // By index: a connection that breaks while it is flushed leaves the list.
  for (std::size_t i = 0; i < attachments_.size(); ++i) {
    Attachment& a = *attachments_[i];
    if (std::max(a.at, log_.begin()) == log_.end()) continue;
    a.connection->wants_output(a);
    if (log_.end() - a.at >= kFlushSize) a.connection->flush();
  }
}

void Process::watch_credit() {
  if (exited_ && !over_) {
    drain_.credit(allowance() > 0, supervisor_.loop().now());
    arm_drain();
  }
}

void Process::attach(Attachment& a, wire::Cursor from) {
  a.process = this;
  a.at = log_.begin();
  a.next[0] = a.from[0] = from.out;
  a.next[1] = a.from[1] = from.err;
  attachments_.push_back(&a);
  if (a.owns_stdin && input_.fd) {
    input_.credit = 0;
    input_.written = kInputWindow;
    grant_input();
  }
  if (exited_) tell_exit(a);
  if (over_) bound(a);
  offer();
  watch_credit();
  end_channel(a);
}

void Process::take_stdin(Attachment& a) {
  if (Attachment* before = stdin_owner()) {
    before->owns_stdin = false;
    before->connection->send(wire::FrameType::stdin_closed, before->channel, 0);
  }
  a.owns_stdin = true;
}

void Process::detach(Attachment& a) {
  const auto found = std::find(attachments_.begin(), attachments_.end(), &a);
  if (found == attachments_.end()) return;
  attachments_.erase(found);
  a.process = nullptr;
  // Nobody may be holding the producer back any more.
  if (held_) pump_later();
}

void Process::add_credit(Attachment& a, std::uint64_t bytes) {
  a.credit += std::min(bytes, kUnlimited - a.credit);
  a.connection->wants_output(a);
  if (held_) pump_later();
  watch_credit();
}

void Process::delivered(Attachment& a) {
  if (held_) pump_later();
  watch_credit();
  end_channel(a);
}

void Process::acknowledge(wire::Cursor stored) {
  // Only what every watcher has been sent may go.
  for (const Attachment* a : attachments_)
    if (std::max(a->at, log_.begin()) < log_.end()) return;
  const std::uint64_t offsets[2] = {stored.out, stored.err};
  log_.acknowledge(offsets);
}

void Process::Input::on_ready(std::uint32_t events) {
  if (!fd) return;
  if (events & EPOLLERR) {
    process->close_input(EPIPE);
    return;
  }
  process->write_input();
}

Attachment* Process::stdin_owner() {
  for (Attachment* a : attachments_)
    if (a->owns_stdin) return a;
  return nullptr;
}

void Process::grant_input() {
  Attachment* owner = stdin_owner();
  if (!owner || !input_.fd || input_.written == 0) return;
  input_.credit += input_.written;
  owner->connection->send(wire::FrameType::stdin_credit, owner->channel, input_.written);
  input_.written = 0;
}

bool Process::stdin_data(Attachment& a, std::string_view bytes) {
  // Input for a process that has just closed its end is dropped; the host has been told.
  if (!a.owns_stdin || !input_.fd || input_.close_wanted) return true;
  if (bytes.size() > input_.credit) return false;
  input_.credit -= bytes.size();
  input_.buffer.append(bytes);
  write_input();
  return true;
}

void Process::stdin_close(Attachment& a) {
  if (!a.owns_stdin || !input_.fd || input_.close_wanted) return;
  input_.close_wanted = true;
  if (input_.terminal) input_.buffer += kEndOfTransmission;
  write_input();
}

void Process::write_input() {
  while (input_.begin < input_.buffer.size()) {
    const ssize_t n = ::write(input_.fd.get(), input_.buffer.data() + input_.begin,
                              input_.buffer.size() - input_.begin);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) {
      close_input(errno);
      return;
    }
    input_.begin += static_cast<std::size_t>(n);
    input_.written += static_cast<std::uint64_t>(n);
  }
  if (input_.begin == input_.buffer.size()) {
    input_.buffer.clear();
    input_.begin = 0;
    if (input_.close_wanted) {
      // The end of transmission was written to a terminal, which stays for its output.
      if (!input_.terminal) close_input(-1);
      return;
    }
  } else if (input_.begin > input_.buffer.size() / 2) {
    input_.buffer.erase(0, std::exchange(input_.begin, 0));
  }
  if (input_.buffer.empty() || input_.written >= kInputWindow / 4) grant_input();
}

// -1: as the host asked, so it is not told.
void Process::close_input(int error_number) {
  if (!input_.fd) return;
  if (request_.tty) supervisor_.loop().forget(input_.fd.get());
  input_.fd.reset();
  input_.buffer.clear();
  input_.begin = 0;
  Attachment* owner = stdin_owner();
  if (owner && error_number >= 0 && !input_.close_wanted)
    owner->connection->send(wire::FrameType::stdin_closed, owner->channel,
                            static_cast<std::uint64_t>(error_number));
}

void Process::resize(std::uint16_t cols, std::uint16_t rows) {
  if (request_.tty && outputs_[0].fd) posix::resize_pty(outputs_[0].fd.get(), cols, rows);
}

}  // namespace sandforge::guest
