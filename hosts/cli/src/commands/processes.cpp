#include "commands/processes.hpp"

#include <algorithm>

namespace sandforge::cli {

std::shared_ptr<Sandbox> running_sandbox(App& app, const std::string& session) {
  const auto sandbox = app.manager().attach(SessionId(session))->sandbox();
  return sandbox->info().machine.state == MachineState::running ? sandbox : nullptr;
}

ProcessInfo listed_process(Sandbox& sandbox, const std::string& session,
                           const std::string& process) {
  auto all = sandbox.list_processes();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const ProcessInfo& info) { return info.id.str() == process; });
  if (found == all.end()) throw_no_process(session, process);
  return std::move(*found);
}

void throw_no_process(const std::string& session, const std::string& process) {
  throw_error(Error(Status::not_found,
                    "the session " + session + " has no process " + process +
                        ": its processes are listed by sandforge ps " + session,
                    "process.not_found"));
}

}  // namespace sandforge::cli
