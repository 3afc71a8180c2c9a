// What /proc tells about processes.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/posix/fd.hpp"

namespace sandforge::posix {

struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';              // Z: all of its threads have ended, waits to be reaped
  std::uint64_t start_time = 0;  // clock ticks since boot: with pid, names a process for good
};

// One line of /proc/PID/stat. The command in it may hold any byte, parentheses and newlines too.
bool parse_stat(std::string_view text, ProcessStat& out);

// /proc, held open, so that later look-ups cost one path component. All members answer false or
// empty where there is no /proc.
class Procfs {
 public:
  Procfs();
  explicit operator bool() const noexcept { return static_cast<bool>(dir_); }

  bool stat(pid_t pid, ProcessStat& out) const;
  std::vector<ProcessStat> processes() const;
  // Calls `use` with the number of each process, from the lowest on, each as soon as it is read:
  // what that process starts meanwhile has a higher number and is met too, except where the numbers
  // begin anew.
  bool each_pid(const std::function<void(pid_t)>& use) const;
  // The value of the first entry `name=…` of its environment, as that was at its exec. False also
  // where it may not be read.
  bool environment(pid_t pid, std::string_view name, std::string& value) const;
  // Direct children of the calling process, ended ones included; false where the kernel has no
  // such list.
  bool own_children(std::vector<pid_t>& out) const;

 private:
  Fd dir_;
  mutable Fd children_;  // /proc/self/task/TID/children
};

}  // namespace sandforge::posix
