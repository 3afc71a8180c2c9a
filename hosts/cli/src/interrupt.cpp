#include "interrupt.hpp"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "exit_codes.hpp"

namespace sandforge::cli {
namespace {

std::stop_source& source() {
  static auto* instance = new std::stop_source;  // outlives every thread
  return *instance;
}
std::atomic<int> g_signal{0};

}  // namespace

void watch_interrupts() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::thread([set] {
    for (;;) {
      int signal = 0;
      if (::sigwait(&set, &signal) != 0) continue;
      int none = 0;
      if (!g_signal.compare_exchange_strong(none, signal)) std::_Exit(kSignalBase + signal);
      source().request_stop();
    }
  }).detach();
}

std::stop_token interrupt_token() {
  return source().get_token();
}
int interrupt_signal() {
  return g_signal.load();
}
void request_interrupt() {
  source().request_stop();
}

}  // namespace sandforge::cli
