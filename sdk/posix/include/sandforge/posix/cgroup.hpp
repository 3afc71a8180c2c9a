// A control group of one's own, through which everything in it is frozen or killed at once: no
// process can fork, change its session or lose its parent fast enough to escape.
//
// Groups of version 2 only, wherever they are mounted: alone, or beside version 1 (the hybrid
// layout). Where there is none, or it may not be written, every call answers false and callers
// fall back on looking for the processes one by one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/posix/fd.hpp"

namespace sandforge::posix {

// The folders under which the calling process's group is visible, the most specific mount first.
std::vector<std::string> own_group_folders();
// The same from the texts of /proc/self/mountinfo and /proc/self/cgroup.
std::vector<std::string> own_group_folders_in(std::string_view mountinfo, std::string_view groups);

class ControlGroup {
 public:
  static constexpr std::string_view kPrefix = "sandforge-guest-";

  // Makes the group kPrefix + `name` below the caller's own and moves the caller into it: what it
  // starts is there from its first instruction. Removes groups of that prefix that have no
  // process any more. One thread only.
  bool make_and_enter(const std::string& name);
  // One that somebody else made. False unless it is the group of that name.
  bool open(const std::string& path, const std::string& name);

  explicit operator bool() const noexcept { return static_cast<bool>(folder_); }
  const std::string& path() const noexcept { return path_; }

  // These spare the caller, who steps out of the group and back into it.
  bool kill_others() noexcept;
  // Returns once all are frozen; false, and all run again, when they are not within the limit.
  bool freeze_others(std::int64_t limit_ms) noexcept;
  // Lets them run again, as far as they were not killed meanwhile.
  bool thaw() noexcept;

  // For a group that the caller is not in: kills all, and waits until none is left.
  bool kill_and_wait(std::int64_t limit_ms) noexcept;
  bool contains_caller() const;
  // Steps out, and removes the group with those below it. False while processes are left.
  bool leave_and_remove() noexcept;

 private:
  bool write(const char* file, const char* text) const noexcept;
  bool event_is(const char* line, std::int64_t limit_ms) const noexcept;
  const char* name() const noexcept;
  bool make() noexcept;
  bool enter() noexcept;
  bool leave() noexcept;

  std::string path_;
  Fd folder_;
  Fd parent_;
  bool inside_ = false;
};

}  // namespace sandforge::posix
