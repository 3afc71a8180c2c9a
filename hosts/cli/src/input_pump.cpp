#include "input_pump.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

namespace sandforge::cli {

InputPump::InputPump(int descriptor, std::shared_ptr<Process> process)
    : descriptor_(descriptor), process_(std::move(process)) {
  if (::pipe2(wake_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe for standard input");
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    ::close(wake_[0]);
    ::close(wake_[1]);
    throw;
  }
}

InputPump::~InputPump() {
  ::close(wake_[1]);
  thread_.join();
  ::close(wake_[0]);
}

bool InputPump::wait_readable() {
  pollfd waiting[2] = {{descriptor_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
  while (::poll(waiting, 2, -1) < 0)
    if (errno != EINTR) return false;
  return waiting[1].revents == 0;
}

void InputPump::run() {
  std::string buffer(64U << 10, '\0');
  while (wait_readable()) {
    const auto got = ::read(descriptor_, buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    try {
      // An input that is closed or cannot be read is at its end.
      if (got <= 0) return process_->close_stdin();
      process_->write(buffer.substr(0, static_cast<std::size_t>(got)));
    } catch (const Exception&) {
      return;  // the process wants no more: how it ends tells the rest
    }
  }
}

}  // namespace sandforge::cli
