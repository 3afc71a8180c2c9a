// A command's output to our descriptors and our input to the command, with back-pressure both ways.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "sandforge/process.hpp"

namespace sandforge::cli {

// Writes output on a thread of its own and grants the process as many bytes as were written: a slow
// reader holds the command back, and no more than one window is ever kept.
class OutputPump {
 public:
  explicit OutputPump(std::function<void()> on_broken_pipe);
  ~OutputPump();
  OutputPump(const OutputPump&) = delete;
  OutputPump& operator=(const OutputPump&) = delete;

  void write(int descriptor, std::string_view bytes);  // from a lane; never blocks
  void attach(std::shared_ptr<Process> process);       // whom to grant
  void finish();                                       // waits until everything is written
  bool broken() const;

 private:
  void run();
  void emit(int descriptor, std::string_view bytes);

  std::function<void()> on_broken_pipe_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<int, std::string>> queue_;
  std::shared_ptr<Process> process_;
  std::uint64_t owed_ = 0;  // written before the process was known
  bool busy_ = false;
  bool closing_ = false;
  bool broken_ = false;
  std::thread thread_;
};

// Passes standard input on until its end, the end of the process, or stop.
class InputPump {
 public:
  explicit InputPump(std::shared_ptr<Process> process);
  ~InputPump();  // stops
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;

 private:
  void run();

  std::shared_ptr<Process> process_;
  int wake_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace sandforge::cli
