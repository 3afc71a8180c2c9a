#include "commands/commands.hpp"
#include "commands/processes.hpp"
#include "exit_codes.hpp"

namespace sandforge::cli {
namespace {

// ps lists for a while what has ended; it is not unknown.
[[noreturn]] void throw_ended(const KillArguments& arguments, const char* what) {
  throw_error(Error(Status::not_found,
                    "the process " + arguments.process + " of the session " + arguments.session +
                        " has ended" + what,
                    "process.ended"));
}

}  // namespace

int kill_command(App& app, const KillArguments& arguments) {
  const auto sandbox = running_sandbox(app, arguments.session);
  if (!sandbox) throw_no_process(arguments.session, arguments.process);
  const ProcessId id(arguments.process);
  const auto found = listed_process(*sandbox, arguments.session, arguments.process);
  if (!found.running && !found.stray) throw_ended(arguments, " already");
  if (arguments.signal == 0) {
    // False where the command itself has ended: what it left behind is ended all the same.
    if (!sandbox->kill_process(id) && !found.stray) throw_ended(arguments, " already");
  } else if (!found.running) {
    throw_ended(arguments, ": what it left running is ended by kill without --signal");
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
