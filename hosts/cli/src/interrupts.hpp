// Ctrl-C and its kin: the first one asks everything to end, the second ends the program at once.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sandforge::cli {

// At most one object at a time. Signals are handled by functions that the programs started by us do
// not inherit; a write to a closed pipe is an error and no signal.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Requested by the first SIGINT, SIGTERM, SIGHUP or SIGQUIT.
  std::stop_token token() const { return source_.get_token(); }
  int caught() const noexcept { return caught_.load(); }  // the signal; 0: none

  // Before the program ends at once, on a thread of its own. Replaces the one before; null: none.
  void on_exit(std::function<void()> call);
  // What standard error says then, if it takes it at once. Replaces the one before; empty: nothing.
  void say_at_exit(std::string text);
  // The size of the terminal has changed.
  void on_resize(std::function<void()> call);

 private:
  void let_go();
  void watch();
  void received(int signal);

  std::stop_source source_;
  std::atomic<int> caught_{0};
  std::mutex mutex_;
  std::function<void()> on_exit_, on_resize_;
  std::string say_at_exit_;
  std::vector<std::pair<int, struct sigaction>> before_;  // of the signals that we took over
  int pipe_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace sandforge::cli
