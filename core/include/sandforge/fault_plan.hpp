// Which faults are put between the core and a provider: a script as data, for tests of providers
// and of hosts. sandforge/faults.hpp carries it out.
//
//   sandbox:
//     provider: docker
//     wrap: fault
//     faults:
//       seed: 7
//       rules:
//         - {at: start, do: refuse, error: UNAUTHENTICATED}         # each time
//         - {at: spawn, nth: 2, do: lose}                           # the second time only
//         - {at: output, every: 3, after: 65536, do: cut}           # each third process
//         - {at: info, probability: 0.1, do: delay, ms: 500}        # by the seed
//
// The first rule that fits an occurrence is the one that counts. Source: the definitions "faults"
// and "fault" of schemas/host-config.schema.json. Threads: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sandforge/error.hpp"
#include "sandforge/schema.hpp"

namespace sandforge {

// Where. Occurrences are counted over a provider with all its sandboxes, from 1, in the order in
// which the calls come.
enum class FaultPoint : std::uint8_t {
  // Calls.
  open,  // of the provider
  describe,
  create,  // an unstarted sandbox; answers at once
  start,
  stop,
  destroy,
  info,
  instructions,
  list,  // processes
  attach,
  spawn,
  signal,
  cancel,  // of a process
  input,   // a write to a process
  // Processes: an occurrence is a process that was spawned or attached.
  output,
  end,
};

enum class FaultKind : std::uint8_t {
  refuse,     // it never arrives: an error, and nothing can have started
  lose,       // it arrives, its answer does not: an error, and it may have started
  drop,       // it never arrives, and no answer comes
  half_open,  // it arrives, and from then on nothing comes back
  delay,      // it arrives later; of output and end: they come later
  duplicate,  // it arrives twice, the second answer is given; of end: it is told twice
  crash,  // the provider crashes: all that is pending with it ends so; it is there again at once
  cut,    // the connection of the process breaks
  skew,   // the provider's clock is wrong: the times that it tells are shifted
};

std::string_view to_string(FaultPoint point) noexcept;  // "half_open", as in the configuration
std::string_view to_string(FaultKind kind) noexcept;

struct FaultRule {
  FaultRule() = default;
  FaultRule(FaultPoint p, FaultKind k) : at(p), kind(k) {}

  FaultPoint at = FaultPoint::start;
  FaultKind kind = FaultKind::refuse;
  // At most one of these; none: each occurrence.
  std::optional<std::uint64_t> nth;    // only this one, from 1
  std::optional<std::uint64_t> every;  // each one whose number it divides
  std::optional<double> probability;   // above 0, at most 1
  // Output: so many bytes of the process come through, both streams together, then it strikes.
  std::uint64_t after = 0;
  // delay: how long. skew: how far, also back. drop, half_open: when the provider gives up, with
  // the error; absent: never, so only a deadline or a cancel ends it.
  std::optional<std::chrono::milliseconds> time;
  // Of refuse, lose, cut and half_open: transport_lost by default. Of drop: timeout.
  std::optional<Status> error;
  std::optional<std::chrono::milliseconds> retry_after;  // told with the error
};

struct FaultPlan {
  std::uint64_t seed = 0;  // of the probabilities: the same seed strikes the same occurrences
  std::vector<FaultRule> rules;
};

// Rules that say what cannot be done, with pointers such as "/rules/0/do". Empty: a good plan.
std::vector<Issue> check_fault_plan(const FaultPlan& plan);

// Reads `faults` of a configuration. Every mistake is in the error's details, "issues"; reason
// "faults.invalid".
Result<FaultPlan> read_fault_plan(const json::Value& document);

// Every mistake of `faults`, by its shape and by what the rules say. Pointers are into the
// document.
std::vector<Issue> check_faults(const json::Value& document);

}  // namespace sandforge
