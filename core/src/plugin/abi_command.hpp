// Commands and environments in the form that plugins read.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "plugin/abi_text.hpp"
#include "sandforge/abi.h"
#include "sandforge/command.hpp"

namespace sandforge::plugin {

// Negative reads as 0.
std::uint64_t to_ms(std::chrono::milliseconds duration) noexcept;

// No NUL anywhere, no '=' in a name, no empty name or argument list: typed errors with the reason
// "command.invalid".
Result<void> check_env(const EnvMap& env);
Result<void> check_command(const Command& command);

// Points into the map, which must outlive it.
class EnvView {
 public:
  explicit EnvView(const EnvMap& env);
  const sf_env_entry* data() const noexcept { return entries_.data(); }
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  std::vector<sf_env_entry> entries_;
};

// Points into the command, which must outlive it.
class CommandView {
 public:
  explicit CommandView(const Command& command);
  CommandView(const CommandView&) = delete;
  CommandView& operator=(const CommandView&) = delete;
  const sf_command* get() const noexcept { return &value_; }

 private:
  EnvView env_;
  std::vector<sf_bytes> argv_;
  sf_tty tty_{};
  sf_command value_{};
};

}  // namespace sandforge::plugin
