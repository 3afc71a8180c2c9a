// When the output of a command is over although something still holds its pipes.
//
// The leader has exited: the command ends at end of file, or when its pipes were idle for 100 ms,
// or 2 s after the exit at the latest. Time in which the reader withholds credit does not count; a
// reader that gives it back within 100 ms, again and again, withholds nothing. Without any clock of
// its own.
#pragma once

#include <cstdint>
#include <optional>

namespace sandforge::posix {

class DrainRule {
 public:
  static constexpr std::int64_t kIdleMs = 100;
  static constexpr std::int64_t kLimitMs = 2000;

  void leader_exited(std::int64_t now_ms) noexcept;
  void data(std::int64_t now_ms) noexcept;               // something was read
  void credit(bool open, std::int64_t now_ms) noexcept;  // credit came or ran out

  bool exited() const noexcept { return exited_; }
  // When the command is over if nothing happens; nothing while the leader runs or credit is out.
  std::optional<std::int64_t> deadline() const noexcept;
  bool over(std::int64_t now_ms) const noexcept;

 private:
  bool exited_ = false;
  bool open_ = true;
  std::int64_t since_ = 0;  // when counting last began: exit, or credit that came back
  std::int64_t last_data_ = 0;
  std::int64_t counted_ = 0;  // open time before since_
};

}  // namespace sandforge::posix
