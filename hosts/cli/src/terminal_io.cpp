#include "terminal_io.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace sandforge::cli {

OutputPump::OutputPump(std::function<void()> on_broken_pipe)
    : on_broken_pipe_(std::move(on_broken_pipe)), thread_([this] { run(); }) {}

OutputPump::~OutputPump() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void OutputPump::write(int descriptor, std::string_view bytes) {
  {
    const std::lock_guard lock(mutex_);
    queue_.emplace_back(descriptor, bytes);
  }
  changed_.notify_all();
}

void OutputPump::attach(std::shared_ptr<Process> process) {
  std::uint64_t owed = 0;
  {
    const std::lock_guard lock(mutex_);
    process_ = process;
    std::swap(owed, owed_);
  }
  if (owed > 0) process->grant(owed);
}

void OutputPump::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

bool OutputPump::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

void OutputPump::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const auto [descriptor, bytes] = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    emit(descriptor, bytes);
    lock.lock();
    busy_ = false;
    const auto process = process_;
    if (!process) owed_ += bytes.size();
    changed_.notify_all();
    if (!process) continue;
    lock.unlock();
    process->grant(bytes.size());
    lock.lock();
  }
}

void OutputPump::emit(int descriptor, std::string_view bytes) {
  while (!bytes.empty() && !broken()) {
    const auto n = ::write(descriptor, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd poll_fd{descriptor, POLLOUT, 0};
      ::poll(&poll_fd, 1, -1);
    } else if (errno != EINTR) {
      {
        const std::lock_guard lock(mutex_);
        broken_ = true;
      }
      on_broken_pipe_();
    }
  }
}

InputPump::InputPump(std::shared_ptr<Process> process) : process_(std::move(process)) {
  if (::pipe2(wake_, O_CLOEXEC) == 0) thread_ = std::thread([this] { run(); });
}

InputPump::~InputPump() {
  if (wake_[1] >= 0) ::close(wake_[1]);
  if (thread_.joinable()) thread_.join();
  if (wake_[0] >= 0) ::close(wake_[0]);
}

void InputPump::run() {
  char buffer[65536];
  try {
    for (;;) {
      pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {wake_[0], POLLIN, 0}};
      if (::poll(fds, 2, -1) < 0) {
        if (errno == EINTR) continue;
        break;
      }
      if (fds[1].revents != 0) return;
      const auto n = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) break;
      process_->write(std::string(buffer, static_cast<std::size_t>(n)));
    }
    process_->close_stdin();
  } catch (const Exception&) {
    // The command takes no more input: it has ended, or closed its side. Its own end is what
    // counts.
  }
}

}  // namespace sandforge::cli
