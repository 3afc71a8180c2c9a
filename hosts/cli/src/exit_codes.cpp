#include "exit_codes.hpp"

namespace sandforge::cli {

int exit_code_of(const CommandResult& result) noexcept {
  switch (result.outcome) {
    case Outcome::exited:
      return result.exit_code.value_or(kFailure) & 0xff;
    case Outcome::signaled:
      return kSignalBase + result.signal;
    case Outcome::timed_out:
      return kTimeout;
    case Outcome::out_of_memory:
      return kSignalBase + 9;
    default:
      return kFailure;
  }
}

int exit_code_of(const Error& error) noexcept {
  if (error.reason == "command.not_found") return kNotFound;
  if (error.reason == "command.not_executable") return kNotExecutable;
  return kFailure;
}

}  // namespace sandforge::cli
