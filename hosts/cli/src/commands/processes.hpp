// The processes of a session whose machine runs.
#pragma once

#include <memory>
#include <string>

#include "app.hpp"
#include "sandforge/backend.hpp"
#include "sandforge/sandbox.hpp"

namespace sandforge::cli {

// Null where its machine does not run: a look must not start it.
std::shared_ptr<Sandbox> running_sandbox(App& app, const std::string& session);
// As it is listed. Throws where it is not: not_found, with where to look.
ProcessInfo listed_process(Sandbox& sandbox, const std::string& session,
                           const std::string& process);
[[noreturn]] void throw_no_process(const std::string& session, const std::string& process);

}  // namespace sandforge::cli
