#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "new_session.hpp"

namespace sandforge::cli {
namespace {

int leave_running(App& app, const ExecArguments& arguments, Session& session, EnvMap env) {
  Command command;
  command.argv = arguments.command.argv;
  command.shell = arguments.command.shell;
  SpawnOptions options;
  options.detach = true;
  options.stdin_pipe = false;
  options.env = std::move(env);
  options.cwd = arguments.command.cwd ? arguments.command.cwd : default_cwd(session.record());
  options.timeout = arguments.command.timeout;
  start_session(app, session, arguments.env);
  const auto process = session.sandbox()->spawn(std::move(command), std::move(options));
  if (!app.terminal().json())
    return app.terminal().exit_code_after(app.terminal().print(process->id().str() + "\n"));
  json::Object out;
  out.set("session", session.id().str());
  out.set("process", process->id().str());
  return app.terminal().exit_code_after(app.terminal().print_json(out));
}

// Nothing comes from there, whoever gets it.
bool stdin_is_null_device() {
  struct stat here {};
  struct stat null {};
  return ::fstat(0, &here) == 0 && S_ISCHR(here.st_mode) && ::stat("/dev/null", &null) == 0 &&
         here.st_rdev == null.st_rdev;
}

// Where nobody asked for it by -i, the way out is to go without.
ForegroundResult run_with_hint(const Session& session, const ForegroundOptions& options, App& app,
                               bool asked_for) {
  try {
    return run_foreground(session.sandbox(), options, app.terminal(), app.interrupts());
  } catch (const Exception& failure) {
    auto error = failure.error();
    if (!asked_for && error.reason == "feature.spawn.stdin")
      error.details.set("hint", "with -n the command gets none");
    throw_error(std::move(error));
  }
}

}  // namespace

int exec_command(App& app, const ExecArguments& arguments) {
  const auto session = app.manager(setup_options(app, {})).attach(SessionId(arguments.session));

  ForegroundOptions options;
  options.command = arguments.command;
  for (const auto& variable : arguments.env)
    options.env[variable.name] = variable.value;
  if (arguments.detach) return leave_running(app, arguments, *session, std::move(options.env));
  options.default_cwd = default_cwd(session->record());
  options.capture = app.terminal().json();
  options.stdin_open =
      arguments.command.stdin_wanted ||
      (!arguments.command.stdin_refused && ::isatty(0) != 1 && !stdin_is_null_device());
  start_session(app, *session, arguments.env);
  const auto ended = run_with_hint(*session, options, app, arguments.command.stdin_wanted);
  if (app.terminal().json()) {
    json::Object out;
    out.set("session", session->id().str());
    out.set("result", result_json(ended.result));
    if (!app.terminal().print_json(out) && errno != ECANCELED)
      return app.terminal().exit_code_after(false);
  } else {
    tell_end(app, *session, ended);
  }
  return exit_code_of(ended, app.interrupts());
}

}  // namespace sandforge::cli
