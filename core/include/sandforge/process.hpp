// A running command of a sandbox: output, input, end.
// Source: the process handle of the workspace-sandbox contract.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "sandforge/command.hpp"
#include "sandforge/handler.hpp"

namespace sandforge {

// Takes a piece of output, on the sandbox's lane: never two calls at once, in order, all of them
// before the result. It must not block for long: use manual_credit to hold a producer back. When it
// throws, the command goes on, later calls are left out, and the result's error tells.
using OutputFn = std::function<void(std::string_view)>;

inline constexpr std::uint64_t kUnlimited = UINT64_MAX;

struct ExecOptions {
  ExecOptions() = default;
  // For everything that the call does, a start included. Absent: exec takes the sandbox's, spawn
  // the command's; 0: none.
  std::optional<std::chrono::milliseconds> timeout;
  std::chrono::milliseconds grace{2000};  // from terminate to kill
  EnvMap env;
  std::optional<std::string> cwd;
  std::string user;
  OutputFn on_stdout;
  OutputFn on_stderr;
  std::stop_token stop;  // a request ends the whole tree
  // Kept per stream, newest bytes; absent: 64 MiB for execute_command and exec, 1 MiB for spawn.
  std::optional<std::uint64_t> max_retained_bytes;
  // Hard, both streams together: more output ends the command, and what is more goes to nobody.
  std::optional<std::uint64_t> output_limit;
  bool combined = false;
  std::string tag;
  std::string request_id;
};

struct SpawnOptions : ExecOptions {
  SpawnOptions() = default;
  std::optional<bool> stdin_pipe;  // absent: where the provider offers one
  bool detach = false;
  std::optional<Tty> tty;
  // Output comes only as grant() allows, after the first window. Else credit comes back as
  // callbacks return.
  bool manual_credit = false;
  std::uint64_t window = 1U << 20;
};

// A reader of a process that an earlier host started.
struct AttachOptions {
  AttachOptions() = default;
  OutputCursor from;  // what is not kept any more counts as dropped
  OutputFn on_stdout;
  OutputFn on_stderr;
  std::optional<std::uint64_t> max_retained_bytes;  // as of spawn
  bool manual_credit = false;                       // as of spawn, with the window
  std::uint64_t window = 1U << 20;
};

struct WaitOptions {
  WaitOptions() = default;
  OutputFn on_stdout;  // what comes during this wait
  OutputFn on_stderr;
  std::stop_token stop;  // a request ends the process, not only the wait
};

// Dropping the last pointer to a process lets go of it; it runs on.
//
// Thread rule: every function from any thread, the blocking ones not on a thread of the Runtime;
// handlers run on the sandbox's lane.
class Process {
 public:
  virtual ~Process() = default;

  virtual ProcessId id() const = 0;      // empty until it has started
  virtual std::int64_t pid() const = 0;  // inside the sandbox; 0: not known
  virtual const std::string& command() const = 0;
  virtual bool running() const = 0;
  virtual std::optional<int> exit_code() const = 0;  // as in CommandResult
  virtual std::string out() const = 0;               // what is retained now
  virtual std::string err() const = 0;
  virtual std::uint64_t stdout_dropped_bytes() const = 0;
  virtual std::uint64_t stderr_dropped_bytes() const = 0;

  // The end, for any number of callers: all get the same result. A command that could not start
  // gives an Error; how it ended otherwise is in the result.
  virtual void async_wait(WaitOptions options, Handler<CommandResult> done) = 0;
  // All of data was taken: waits for room. conflict: the process has ended, stdin was closed or not
  // asked for. no_space: more than 64 MiB wait already.
  virtual void async_write(std::string data, Handler<void> done) = 0;
  virtual void async_close_stdin(Handler<void> done) = 0;  // idempotent
  // Ends the whole tree at once. false: it had ended already.
  virtual void async_kill(Handler<bool> done) = 0;
  // Linux numbers, to the leader or the whole tree. conflict: it has ended.
  virtual void async_signal(int signal, bool tree, Handler<void> done) = 0;
  virtual void async_resize(std::uint32_t cols, std::uint32_t rows, Handler<void> done) = 0;
  virtual void grant(std::uint64_t bytes) = 0;

  // Blocking forms: throw the Error.
  CommandResult wait(WaitOptions options = {});
  void write(std::string data);
  void close_stdin();
  bool kill();
  void signal(int signal, bool tree = false);
};

}  // namespace sandforge
