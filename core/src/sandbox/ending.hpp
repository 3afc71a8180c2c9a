// From what a provider says about the end of a command to the result that a caller gets.
#pragma once

#include <chrono>
#include <optional>

#include "sandforge/backend.hpp"

namespace sandforge::sandbox {

// Everything that is known at the end.
struct Ending {
  std::optional<Exit> exit;
  std::optional<Error> error;
  bool started = true;      // else nothing says that it did
  bool cancelled = false;   // the caller asked for the end
  bool over_limit = false;  // it wrote more than its hard limit
  bool machine_destroyed = false;
  std::chrono::milliseconds time{0};
};

// Everything but output and command. A lost stream never has an exit code.
CommandResult to_result(Ending ending);

// The outcome that an error of a running command stands for.
Outcome outcome_of(Status code) noexcept;

}  // namespace sandforge::sandbox
