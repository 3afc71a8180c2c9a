// What to run, and how it ended: sf_command and sf_exit as values.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "text.hpp"

namespace sandforge::plugin {

// Bytes without NUL. An absent value means: unset the variable.
class EnvEntry {
 public:
  EnvEntry(std::string variable, std::optional<std::string> text)
      : name(std::move(variable)), value(std::move(text)) {}
  std::string name;
  std::optional<std::string> value;
};

class Tty {
 public:
  Tty() noexcept {}
  std::uint32_t cols = 80;
  std::uint32_t rows = 24;
  std::string term;  // empty: "xterm-256color"
};

/*
 * A command, as sf_command describes it: shell text, or else argv. A class with a constructor,
 * because g++ 12 copies aggregates wrongly into coroutines.
 */
class Command {
 public:
  Command() {}
  // A copy of everything that the host filled.
  explicit Command(const sf_command& raw) {
    const auto c = detail::read_appendable(&raw);
    shell = copy_optional(c.shell);
    for (std::size_t i = 0; i < c.argc; ++i)
      argv.push_back(copy(c.argv[i]));
    for (std::size_t i = 0; i < c.env_count; ++i) {
      env.emplace_back(copy(c.env[i].name), copy_optional(c.env[i].value));
    }
    cwd = copy_optional(c.cwd);
    user = copy(c.user);
    if (c.tty != nullptr) {
      tty.emplace();
      tty->cols = c.tty->cols;
      tty->rows = c.tty->rows;
      tty->term = copy(c.tty->term);
    }
    pipe_stdin = c.stdin_mode == SF_STDIN_PIPE;
    combine_output = c.output == SF_OUTPUT_COMBINED;
    detach = (c.flags & SF_COMMAND_DETACH) != 0;
    timeout = std::chrono::milliseconds(static_cast<std::int64_t>(c.timeout_ms));
    grace = std::chrono::milliseconds(static_cast<std::int64_t>(c.grace_ms));
    window = c.window;
    tag = copy(c.tag);
    request_id = copy(c.request_id);
  }

  std::optional<std::string> shell;
  std::vector<std::string> argv;
  std::vector<EnvEntry> env;
  std::optional<std::string> cwd;  // absent: the working directory of the sandbox
  std::string user;                // empty: the user of the sandbox
  std::optional<Tty> tty;
  bool pipe_stdin = false;      // else end of file at once
  bool combine_output = false;  // stderr goes where stdout goes
  bool detach = false;
  std::chrono::milliseconds timeout{0};  // 0: none
  std::chrono::milliseconds grace{0};    // 0: kill at once
  std::uint64_t window = 1 << 16;        // first credit of the output
  std::string tag;
  std::string request_id;
};

namespace detail {

// A command as the boundary's struct, borrowing from it.
class CommandView {
 public:
  explicit CommandView(const Command& c) {
    for (const std::string& word : c.argv)
      argv_.push_back(to_bytes(word));
    for (const EnvEntry& e : c.env)
      env_.push_back({to_bytes(e.name), maybe_bytes(e.value)});
    raw_.struct_size = sizeof raw_;
    raw_.shell = maybe_bytes(c.shell);
    raw_.argv = argv_.data();
    raw_.argc = argv_.size();
    raw_.env = env_.data();
    raw_.env_count = env_.size();
    raw_.cwd = maybe_bytes(c.cwd);
    raw_.user = to_str(c.user);
    if (c.tty) {
      tty_ = {c.tty->cols, c.tty->rows, to_str(c.tty->term)};
      raw_.tty = &tty_;
    }
    raw_.stdin_mode = c.pipe_stdin ? SF_STDIN_PIPE : SF_STDIN_EOF;
    raw_.output = c.combine_output ? SF_OUTPUT_COMBINED : SF_OUTPUT_SEPARATE;
    raw_.flags = c.detach ? SF_COMMAND_DETACH : 0;
    raw_.timeout_ms = static_cast<std::uint64_t>(c.timeout.count());
    raw_.grace_ms = static_cast<std::uint64_t>(c.grace.count());
    raw_.window = c.window;
    raw_.tag = to_str(c.tag);
    raw_.request_id = to_str(c.request_id);
  }
  CommandView(const CommandView&) = delete;
  CommandView& operator=(const CommandView&) = delete;
  const sf_command* get() const noexcept { return &raw_; }

 private:
  std::vector<sf_bytes> argv_;
  std::vector<sf_env_entry> env_;
  sf_tty tty_{};
  sf_command raw_{};
};

}  // namespace detail

enum class ExitOutcome : std::uint32_t {
  unknown = SF_EXIT_UNKNOWN,
  exited = SF_EXIT_EXITED,
  signaled = SF_EXIT_SIGNALED,
  timed_out = SF_EXIT_TIMED_OUT,
  cancelled = SF_EXIT_CANCELLED,
  out_of_memory = SF_EXIT_OUT_OF_MEMORY
};

// How a process ended. Times are nanoseconds since the Unix epoch, 0 when not known.
class Exit {
 public:
  Exit() noexcept {}
  explicit Exit(const sf_exit& raw) noexcept {
    const auto e = detail::read_appendable(&raw);
    outcome = e.outcome <= SF_EXIT_OUT_OF_MEMORY ? static_cast<ExitOutcome>(e.outcome)
                                                 : ExitOutcome::unknown;
    code = e.code;
    signal = e.signal;
    pipes_held = (e.flags & SF_EXIT_PIPES_HELD) != 0;
    killed = (e.flags & SF_EXIT_KILLED) != 0;
    started_at = e.started_at;
    ended_at = e.ended_at;
  }
  static Exit exited(std::int32_t exit_code) noexcept {
    Exit e;
    e.outcome = ExitOutcome::exited;
    e.code = exit_code;
    return e;
  }
  static Exit signaled(std::int32_t number) noexcept {
    Exit e;
    e.outcome = ExitOutcome::signaled;
    e.signal = number;
    return e;
  }

  sf_exit raw() const noexcept {
    const std::uint32_t flags =
        (pipes_held ? SF_EXIT_PIPES_HELD : 0) | (killed ? SF_EXIT_KILLED : 0);
    return {sizeof(sf_exit), static_cast<std::uint32_t>(outcome), flags, code, signal, started_at,
            ended_at};
  }

  ExitOutcome outcome = ExitOutcome::unknown;
  std::int32_t code = 0;
  std::int32_t signal = 0;
  bool pipes_held = false;  // a process of the tree still holds the output open
  bool killed = false;      // a signal of ours ended the leader
  std::int64_t started_at = 0;
  std::int64_t ended_at = 0;
};

enum class SignalScope : std::uint32_t { leader = SF_SIGNAL_LEADER, tree = SF_SIGNAL_TREE };

}  // namespace sandforge::plugin
