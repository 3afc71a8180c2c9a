// The processes of a session whose machine runs.
#pragma once

#include <memory>
#include <string>

#include "app.hpp"
#include "sandforge/sandbox.hpp"

namespace sandforge::cli {

// Null where its machine does not run: a look must not start it.
std::shared_ptr<Sandbox> running_sandbox(App& app, const std::string& session);
// not_found, with where to look.
[[noreturn]] void throw_no_process(const std::string& session, const std::string& process);

}  // namespace sandforge::cli
