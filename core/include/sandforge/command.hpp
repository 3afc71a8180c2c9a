// Commands and how they end.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandforge/error.hpp"
#include "sandforge/ids.hpp"

namespace sandforge {

// Names to values; no value means: unset the name. Bytes without NUL, names without '='.
using EnvMap = std::map<std::string, std::optional<std::string>>;

struct Tty {
  Tty() = default;
  Tty(std::uint32_t columns, std::uint32_t lines, std::string type = "xterm-256color")
      : cols(columns), rows(lines), term(std::move(type)) {}
  std::uint32_t cols = 80;
  std::uint32_t rows = 24;
  std::string term = "xterm-256color";
};

// Options and commands, here and elsewhere, have constructors, because g++ 12 miscompiles
// coroutines that pass or make aggregates.

// What to run: shell text, or argv without a shell. All strings are bytes.
struct Command {
  Command() = default;
  std::optional<std::string> shell;
  std::vector<std::string> argv;
  EnvMap env;
  std::optional<std::string> cwd;  // absent: the sandbox's working directory
  std::string user;                // empty: the sandbox's user
  std::optional<Tty> tty;
  bool stdin_pipe = false;               // else end of file at once
  bool combined = false;                 // stderr goes where stdout goes
  bool detach = false;                   // outlives the host's connection
  std::chrono::milliseconds timeout{0};  // 0: none
  std::chrono::milliseconds grace{2000};
  std::uint64_t window = 1U << 20;  // first credit of output, bytes
  std::string tag;
  std::string request_id;  // empty: core chooses one
};

enum class Outcome : std::uint8_t {
  exited,
  signaled,
  timed_out,
  cancelled,
  out_of_memory,
  output_limit,
  transport_lost,
  destroyed,
  crashed,
  unknown,
};
std::string_view to_string(Outcome outcome) noexcept;  // "exited", "timed_out", …

// How the leader of a process ended, as its provider reports it.
struct Exit {
  Outcome outcome = Outcome::unknown;
  std::optional<int> code;  // where a process exited
  int signal = 0;           // 0: none
  bool pipes_held = false;  // a process of its tree still holds the output open
  bool killed = false;      // a signal of ours ended it
};

struct CommandResult {
  Outcome outcome = Outcome::unknown;
  bool success = false;          // exited with 0
  std::optional<int> exit_code;  // exited: its code; timed out: 124; signaled: 128 + n; else absent
  int signal = 0;                // 0: none
  std::string out;               // stdout, bytes
  std::string err;               // stderr, bytes
  std::chrono::milliseconds execution_time{0};
  bool timed_out = false;
  bool killed = false;
  bool stdout_truncated = false;
  bool stderr_truncated = false;
  std::uint64_t stdout_dropped_bytes = 0;
  std::uint64_t stderr_dropped_bytes = 0;
  std::string command;  // shell text that ran, or argv quoted for reading
  bool command_may_have_started = true;
  std::optional<Error> error;  // for the outcomes that are not an end of the process itself

  std::string stdout_text() const;  // valid UTF-8, U+FFFD for what is not
  std::string stderr_text() const;
};
json::Value to_json(const CommandResult& result);

// Offsets in each output stream, in bytes from its beginning.
struct OutputCursor {
  std::uint64_t out = 0;
  std::uint64_t err = 0;
};

}  // namespace sandforge
