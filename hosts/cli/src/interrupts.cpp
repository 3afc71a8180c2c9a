#include "interrupts.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <stdexcept>

#include "exit_codes.hpp"

namespace sandforge::cli {
namespace {

constexpr std::array<int, 5> kWatched = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
constexpr std::array<int, 2> kSilenced = {SIGPIPE, SIGXFSZ};
constexpr char kStop = 0;

// A handler can reach nothing else.
std::atomic<int> g_pipe{-1};

void forward(int signal) {
  const int saved = errno;
  const char byte = static_cast<char>(signal);
  const auto wrote = ::write(g_pipe.load(), &byte, 1);
  static_cast<void>(wrote);  // a full pipe holds enough signals already
  errno = saved;
}

// Not SIG_IGN, which programs that we start would inherit.
void nothing(int) {}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupts::Interrupts() {
  if (::pipe2(pipe_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe for signals");
  ::fcntl(pipe_[1], F_SETFL, O_NONBLOCK);
  g_pipe.store(pipe_[1]);
  for (const int signal : kWatched) {
    struct sigaction present {};
    ::sigaction(signal, nullptr, &present);
    // What whoever started us ignores (nohup, a shell's background job) stays ignored.
    if (present.sa_handler == SIG_IGN) continue;
    before_.emplace_back(signal, present);
    handle(signal, forward);
  }
  for (const int signal : kSilenced)
    handle(signal, nothing);
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (...) {
    let_go();
    throw;
  }
}

Interrupts::~Interrupts() {
  let_go();
}

void Interrupts::let_go() {
  for (const auto& [signal, action] : before_)
    ::sigaction(signal, &action, nullptr);
  const auto wrote = ::write(pipe_[1], &kStop, 1);
  static_cast<void>(wrote);
  if (thread_.joinable()) thread_.join();
  g_pipe.store(-1);
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

void Interrupts::on_exit(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  on_exit_ = std::move(call);
}

void Interrupts::say_at_exit(std::string text) {
  const std::lock_guard lock(mutex_);
  say_at_exit_ = std::move(text);
}

void Interrupts::on_resize(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  on_resize_ = std::move(call);
}

void Interrupts::watch() {
  for (;;) {
    char byte = kStop;
    const auto got = ::read(pipe_[0], &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1 || byte == kStop) return;
    received(byte);
  }
}

void Interrupts::received(int signal) {
  if (signal == SIGWINCH) {
    const std::lock_guard lock(mutex_);
    if (on_resize_) on_resize_();
    return;
  }
  int none = 0;
  if (caught_.compare_exchange_strong(none, signal)) {
    source_.request_stop();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (on_exit_) on_exit_();
    pollfd waiting{2, POLLOUT, 0};
    if (!say_at_exit_.empty() && ::poll(&waiting, 1, 0) == 1) {
      const auto text = say_at_exit_.substr(0, PIPE_BUF);
      const auto wrote = ::write(2, text.data(), text.size());
      static_cast<void>(wrote);
    }
  }
  ::_exit(kSignalBase + signal);
}

}  // namespace sandforge::cli
