#include "run_command.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <csignal>

#include "exit_codes.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "terminal_io.hpp"

namespace sandforge::cli {
namespace {

Command make_command(const CommandOptions& options) {
  if (options.shell.has_value() == !options.argv.empty())
    throw Fatal(kUsage, "give a command after --, or --shell TEXT, not both");
  Command command;
  command.shell = options.shell;
  command.argv = options.argv;
  return command;
}

SpawnOptions make_options(const CommandOptions& options, bool json) {
  SpawnOptions out;
  out.stdin_pipe = options.interactive;
  out.env = parse_env(options.env);
  out.cwd = options.cwd;
  out.stop = interrupt_token();
  if (!(options.timeout_s >= 0) || options.timeout_s > 1e9)
    throw Fatal(kUsage, "--timeout takes seconds, 0 to 1000000000");
  out.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(options.timeout_s * 1000)));
  if (options.tty) {
    Tty tty;
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
      tty.cols = size.ws_col;
      tty.rows = size.ws_row;
    }
    out.tty = tty;
  }
  if (json) {
    out.max_retained_bytes = 64U << 20;
  } else {
    out.max_retained_bytes = 0;
    out.manual_credit = true;
  }
  return out;
}

int exit_code(const CommandResult& result, bool reader_gone) {
  if (reader_gone) return kBrokenPipe;
  if (result.outcome == Outcome::cancelled && interrupt_signal() != 0)
    return kSignalBase + interrupt_signal();
  if (result.exit_code) return *result.exit_code;
  if (result.error)
    complain("error", result.error->message);
  else
    complain("error", "the command ended as " + std::string(to_string(result.outcome)));
  return kFailed;
}

}  // namespace

int run_command(Sandbox& sandbox, const CommandOptions& options, bool json) {
  Command command = make_command(options);
  SpawnOptions spawn = make_options(options, json);
  OutputPump pump([] { request_interrupt(); });
  if (!json) {
    spawn.on_stdout = [&pump](std::string_view bytes) { pump.write(STDOUT_FILENO, bytes); };
    spawn.on_stderr = [&pump](std::string_view bytes) { pump.write(STDERR_FILENO, bytes); };
  }
  CommandResult result;
  try {
    const auto process = sandbox.spawn(std::move(command), spawn);
    if (!json) pump.attach(process);
    std::optional<InputPump> input;
    if (options.interactive) input.emplace(process);
    result = process->wait();
  } catch (const SandboxAbortError&) {
    if (interrupt_signal() != 0) return kSignalBase + interrupt_signal();
    throw;
  } catch (const Exception& e) {
    if (e.error().reason == "command.not_found") {
      complain("error", e.error().message);
      return kNotFound;
    }
    if (e.error().reason == "command.not_executable") {
      complain("error", e.error().message);
      return kNotExecutable;
    }
    throw;
  }
  pump.finish();
  if (json) print_json(to_json(result));
  return exit_code(result, pump.broken());
}

}  // namespace sandforge::cli
