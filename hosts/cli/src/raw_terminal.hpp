// A terminal that passes every key on.
#pragma once

#include <termios.h>

#include <atomic>

namespace sandforge::cli {

class RawTerminal {
 public:
  explicit RawTerminal(int descriptor) : descriptor_(descriptor) {
    if (::tcgetattr(descriptor_, &saved_) != 0) return;
    termios raw = saved_;
    ::cfmakeraw(&raw);
    changed_ = ::tcsetattr(descriptor_, TCSADRAIN, &raw) == 0;
  }
  ~RawTerminal() { restore(); }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  void restore() {
    if (changed_.exchange(false)) ::tcsetattr(descriptor_, TCSADRAIN, &saved_);
  }

 private:
  const int descriptor_;
  termios saved_{};
  std::atomic<bool> changed_{false};
};

}  // namespace sandforge::cli
