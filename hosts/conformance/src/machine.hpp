// What runs on this machine, as /proc shows it: to see what a sandbox leaves behind.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace sandforge::conformance {

// Whether a process has this number and has not ended (a zombie has).
bool alive(pid_t pid);

// Living processes whose arguments, environment or working directory hold the text; not this one.
std::vector<pid_t> processes_with(const std::string& text);
// For a message: number, state and command line.
std::string describe(const std::vector<pid_t>& pids);

// Sockets that this process has open.
std::size_t open_sockets();

// Looks again and again until the condition holds; false when it did not within the bound.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds bound = std::chrono::seconds(10));

}  // namespace sandforge::conformance
