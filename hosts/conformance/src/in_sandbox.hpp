// What happens in a sandbox, looked at by commands in it, so that it works wherever the sandbox is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sandforge/sandbox.hpp"

namespace sandforge::conformance {

CommandResult sh(Sandbox& sandbox, std::string text, ExecOptions options = {});
Command shell(std::string text);
Command argv(std::vector<std::string> words);

bool exists(Sandbox& sandbox, const std::string& path);
std::string read_file(Sandbox& sandbox, const std::string& path);  // empty when it is not there
void touch(Sandbox& sandbox, const std::string& path);
// The number that a command writes into a file; waits for it.
std::int64_t read_pid(Sandbox& sandbox, const std::string& path);
// Whether a process of the sandbox has this number and has not ended.
bool runs(Sandbox& sandbox, std::int64_t pid);
// How many processes of the sandbox have the word in their command lines.
int running_with(Sandbox& sandbox, const std::string& word);
// None has it any more, within a bound.
bool gone(Sandbox& sandbox, const std::string& word);
// The same after a stop, where looking would start the sandbox again: on this machine first, then
// in the sandbox that was started once more.
bool gone_after_stop(Sandbox& sandbox, const std::string& word);

// How often a command that ticks every 100 ms has ticked while the call lasted. A bound in ticks
// stretches with whatever slows the machine or the way to the sandbox.
std::size_t ticks_during(Sandbox& sandbox, const std::function<void()>& call);
// A bound in ticks. What a sanitizer slows down is the suite and the guest, and not what ticks.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t ticks(std::size_t count) {
  return 3 * count;
}
#else
constexpr std::size_t ticks(std::size_t count) {
  return count;
}
#endif

}  // namespace sandforge::conformance
