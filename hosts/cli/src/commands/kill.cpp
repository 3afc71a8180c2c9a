#include "commands/commands.hpp"
#include "commands/processes.hpp"
#include "exit_codes.hpp"

namespace sandforge::cli {
namespace {

// ps lists for a while what has ended; it is not unknown.
void refuse_ended(Sandbox& sandbox, const KillArguments& arguments) {
  for (const auto& process : sandbox.list_processes())
    if (process.id.str() == arguments.process && !process.running)
      throw_error(Error(Status::not_found,
                        "the process " + arguments.process + " of the session " +
                            arguments.session + " has ended already",
                        "process.ended"));
}

}  // namespace

int kill_command(App& app, const KillArguments& arguments) {
  const auto sandbox = running_sandbox(app, arguments.session);
  if (!sandbox) throw_no_process(arguments.session, arguments.process);
  refuse_ended(*sandbox, arguments);
  const ProcessId id(arguments.process);
  if (arguments.signal == 0) {
    if (!sandbox->kill_process(id)) throw_no_process(arguments.session, arguments.process);
  } else {
    AttachOptions options;
    options.max_retained_bytes = 0;
    const auto process = sandbox->attach_process(id, std::move(options));
    if (!process) throw_no_process(arguments.session, arguments.process);
    process->signal(arguments.signal, true);
  }
  if (!app.terminal().json()) return kOk;
  json::Object out;
  out.set("session", arguments.session);
  out.set("process", arguments.process);
  return app.terminal().exit_code_after(app.terminal().print_json(out));
}

}  // namespace sandforge::cli
