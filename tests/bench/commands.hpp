// The commands that the rows of several providers run.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "sandforge/sandbox.hpp"

namespace sandforge::bench {

inline void run_true(Sandbox& sandbox) {
  if (!sandbox.execute_command("true").success) throw std::runtime_error("true failed");
}

// As many zeros as that, to a callback.
inline void stream_zeros(Sandbox& sandbox, std::uint64_t bytes) {
  std::uint64_t seen = 0;
  SpawnOptions options;
  options.stdin_pipe = false;
  options.on_stdout = [&seen](std::string_view piece) { seen += piece.size(); };
  Command command;
  command.shell = "head -c " + std::to_string(bytes) + " /dev/zero";
  const auto process = sandbox.spawn(std::move(command), options);
  if (!process->wait().success || seen != bytes) throw std::runtime_error("bytes were lost");
}

}  // namespace sandforge::bench
