#include "foreground.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "exit_codes.hpp"
#include "input_pump.hpp"
#include "output_inbox.hpp"
#include "raw_terminal.hpp"
#include "terminal.hpp"

namespace sandforge::cli {
namespace {

Tty terminal_of_ours() {
  Tty tty;
  winsize size{};
  if (::ioctl(0, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    tty.cols = size.ws_col;
    tty.rows = size.ws_row;
  }
  if (const char* term = std::getenv("TERM"); term != nullptr && *term != '\0') tty.term = term;
  return tty;
}

SpawnOptions spawn_options(const ForegroundOptions& options,
                           const std::shared_ptr<OutputInbox>& inbox, std::stop_token stop) {
  SpawnOptions out;
  out.timeout = options.command.timeout;
  out.env = options.env;
  out.cwd = options.command.cwd ? options.command.cwd : options.default_cwd;
  out.stop = std::move(stop);
  out.stdin_pipe = options.stdin_open || options.command.tty;
  if (options.command.tty) out.tty = terminal_of_ours();
  if (options.capture) {
    out.max_retained_bytes = 64U << 20;
    return out;
  }
  out.max_retained_bytes = 0;
  out.manual_credit = true;
  out.window = OutputInbox::kWindow;
  out.on_stdout = [inbox](std::string_view data) { inbox->put(1, data); };
  out.on_stderr = [inbox](std::string_view data) { inbox->put(2, data); };
  return out;
}

// What the signals do while a command runs in front; nothing of it stays behind an error.
struct Hooks {
  Interrupts& interrupts;
  ~Hooks() {
    interrupts.on_resize(nullptr);
    interrupts.on_exit(nullptr);
  }
};

}  // namespace

void write_output(OutputInbox& inbox, Process& process, const Terminal& terminal,
                  std::stop_source& stop, ForegroundResult& out) {
  while (auto chunk = inbox.next()) {
    const bool failed = out.broken_pipe || out.output_error || out.dropped;
    if (!failed && !terminal.pass_on(chunk->descriptor, chunk->data)) {
      if (errno == ECANCELED) {
        out.dropped = true;
      } else if (errno == EPIPE) {
        out.broken_pipe = true;
      } else {
        out.output_error = output_error(errno);
      }
      stop.request_stop();
    }
    process.grant(chunk->data.size());
  }
}

ForegroundResult run_foreground(const std::shared_ptr<Sandbox>& sandbox,
                                const ForegroundOptions& options, const Terminal& terminal,
                                Interrupts& interrupts) {
  std::stop_source stop;
  const std::stop_callback interrupted(interrupts.token(), [&stop] { stop.request_stop(); });
  auto inbox = std::make_shared<OutputInbox>();
  Command command;
  command.argv = options.command.argv;
  command.shell = options.command.shell;
  sandbox->async_spawn(
      std::move(command), spawn_options(options, inbox, stop.get_token()),
      [inbox](Result<std::shared_ptr<Process>> process) { inbox->started(std::move(process)); });
  const auto process = inbox->wait_started();
  process->async_wait({}, [inbox, &terminal](Result<CommandResult> result) {
    if (result && result->timed_out) terminal.hurry();
    inbox->ended(std::move(result));
  });

  ForegroundResult out;
  {
    std::optional<RawTerminal> raw;
    if (options.command.tty) raw.emplace(0);
    const Hooks hooks{interrupts};
    interrupts.on_exit([&raw] {
      if (raw) raw->restore();
    });
    interrupts.on_resize([process] {
      const auto tty = terminal_of_ours();
      process->async_resize(tty.cols, tty.rows, [](const Result<void>&) {});
    });
    std::optional<InputPump> input;
    std::exception_ptr no_input;
    try {
      if (options.stdin_open || options.command.tty) input.emplace(0, process);
    } catch (const std::exception&) {
      no_input = std::current_exception();
      stop.request_stop();
    }
    write_output(*inbox, *process, terminal, stop, out);
    input.reset();
    if (no_input) std::rethrow_exception(no_input);
  }
  out.result = *inbox->result();
  sandbox->release_process(process->id());
  return out;
}

int exit_code_of(const ForegroundResult& result, const Interrupts& interrupts) noexcept {
  if (result.broken_pipe) return kBrokenPipe;
  if (result.output_error) return kFailure;
  if (interrupts.caught() != 0) return kSignalBase + interrupts.caught();
  return exit_code_of(result.result);
}

}  // namespace sandforge::cli
