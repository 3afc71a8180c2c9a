#include "sandbox/ending.hpp"

namespace sandforge::sandbox {
namespace {

Outcome decide(const Ending& ending) {
  if (ending.over_limit) return Outcome::output_limit;
  if (ending.error) {
    const Outcome outcome = outcome_of(ending.error->code);
    // The connection ended with the machine, by our own hand.
    if (outcome == Outcome::transport_lost && ending.machine_destroyed) return Outcome::destroyed;
    return outcome;
  }
  if (!ending.exit) return Outcome::unknown;
  const Exit& exit = *ending.exit;
  // Some providers only see the signal that they sent on our behalf.
  const bool ours =
      exit.outcome == Outcome::cancelled || (exit.outcome == Outcome::signaled && exit.killed);
  if (ours && ending.cancelled) return Outcome::cancelled;
  if (ours && ending.machine_destroyed) return Outcome::destroyed;
  return exit.outcome;
}

}  // namespace

Outcome outcome_of(Status code) noexcept {
  switch (code) {
    case Status::gone:
      return Outcome::destroyed;
    case Status::transport_lost:
      return Outcome::transport_lost;
    case Status::cancelled:
      return Outcome::cancelled;
    case Status::timeout:
      return Outcome::timed_out;
    case Status::crashed:
      return Outcome::crashed;
    default:
      return Outcome::unknown;
  }
}

CommandResult to_result(Ending ending) {
  CommandResult result;
  result.outcome = decide(ending);
  if (ending.error && ending.error->code == Status::transport_lost &&
      result.outcome == Outcome::destroyed)
    ending.error->code = Status::gone;
  result.execution_time = ending.time;
  result.timed_out = result.outcome == Outcome::timed_out;
  result.command_may_have_started =
      ending.started || (ending.error && ending.error->may_have_started);
  if (ending.exit) {
    result.signal = ending.exit->signal;
    result.killed = ending.exit->killed;
  }
  switch (result.outcome) {
    case Outcome::exited:
      result.exit_code = ending.exit->code;
      result.success = result.exit_code == 0;
      break;
    case Outcome::signaled:
      result.exit_code = 128 + result.signal;
      break;
    case Outcome::timed_out:
      result.exit_code = 124;
      break;
    default:
      break;
  }
  result.error = std::move(ending.error);
  return result;
}

}  // namespace sandforge::sandbox
