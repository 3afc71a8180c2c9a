// Our standard input to a process.
#pragma once

#include <memory>
#include <thread>

#include "sandforge/process.hpp"

namespace sandforge::cli {

// Reads as fast as the process takes it, and closes its stdin at end of file. A process that has
// ended, or closed its stdin, ends the reading; the rest of the input stays unread, as in a shell.
class InputPump {
 public:
  InputPump(int descriptor, std::shared_ptr<Process> process);
  ~InputPump();  // ends the reading
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;

 private:
  void run();
  bool wait_readable();

  const int descriptor_;
  const std::shared_ptr<Process> process_;
  int wake_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace sandforge::cli
