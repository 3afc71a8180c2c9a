// A command of a sandbox in the foreground: its output on ours, our input on its, byte for byte.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "arguments.hpp"
#include "interrupts.hpp"
#include "output_inbox.hpp"
#include "sandforge/sandbox.hpp"
#include "terminal.hpp"

namespace sandforge::cli {

struct ForegroundOptions {
  CommandArguments command;
  EnvMap env;
  std::optional<std::string> default_cwd;  // unless the command names one
  bool capture = false;                    // keep the output for the result, and write none of it
  bool stdin_open = false;
};

struct ForegroundResult {
  CommandResult result;
  bool broken_pipe = false;           // nobody reads our output; the command was ended
  bool dropped = false;               // an end was wanted, and nobody read the rest of the output
  std::optional<Error> output_error;  // our output could not be written; the command was ended
};

// Writes what comes until the end, or until nothing more is wanted. After a failure, for which a
// stop is requested, the rest is let go, so that the command can end.
void write_output(OutputInbox& inbox, Process& process, const Terminal& terminal,
                  std::stop_source& stop, ForegroundResult& out);

// Until the command has ended. The output is held back by a slow reader: at most 256 KiB wait here.
// An interrupt ends the command's whole tree; after one, and after a timeout, what nobody reads is
// dropped. Throws the Error of a command that could not start.
ForegroundResult run_foreground(const std::shared_ptr<Sandbox>& sandbox,
                                const ForegroundOptions& options, const Terminal& terminal,
                                Interrupts& interrupts);

// What the program exits with, after an end like this.
int exit_code_of(const ForegroundResult& result, const Interrupts& interrupts) noexcept;

}  // namespace sandforge::cli
