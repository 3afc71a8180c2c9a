#include "sandforge/command.hpp"

#include <algorithm>
#include <array>

#include "sandforge/support/utf8.hpp"

namespace sandforge {
namespace {

constexpr std::array<std::string_view, 10> kOutcomes = {
    "exited",       "signaled",       "timed_out", "cancelled", "out_of_memory",
    "output_limit", "transport_lost", "destroyed", "crashed",   "unknown"};

// Where the beginning was dropped, the rest of a character that was cut is no character.
std::string text_of(std::string_view bytes, bool truncated) {
  std::size_t skip = 0;
  if (truncated)
    while (skip < std::min<std::size_t>(3, bytes.size()) &&
           (static_cast<unsigned char>(bytes[skip]) & 0xC0) == 0x80)
      ++skip;
  return to_valid_utf8(bytes.substr(skip));
}

}  // namespace

std::string_view to_string(Outcome outcome) noexcept {
  const auto index = static_cast<std::size_t>(outcome);
  return index < kOutcomes.size() ? kOutcomes[index] : "unknown";
}

std::string CommandResult::stdout_text() const {
  return text_of(out, stdout_truncated);
}

std::string CommandResult::stderr_text() const {
  return text_of(err, stderr_truncated);
}

json::Value to_json(const CommandResult& result) {
  json::Object out;
  out.set("outcome", to_string(result.outcome));
  out.set("success", result.success);
  if (result.exit_code) out.set("exitCode", *result.exit_code);
  if (result.signal != 0) out.set("signal", result.signal);
  out.set("stdout", result.stdout_text());
  out.set("stderr", result.stderr_text());
  out.set("executionTimeMs", static_cast<long long>(result.execution_time.count()));
  out.set("timedOut", result.timed_out);
  out.set("killed", result.killed);
  out.set("stdoutTruncated", result.stdout_truncated);
  out.set("stderrTruncated", result.stderr_truncated);
  out.set("stdoutDroppedBytes", result.stdout_dropped_bytes);
  out.set("stderrDroppedBytes", result.stderr_dropped_bytes);
  out.set("command", to_valid_utf8(result.command));
  out.set("commandMayHaveStarted", result.command_may_have_started);
  if (result.error) out.set("error", to_json(*result.error));
  return out;
}

}  // namespace sandforge
