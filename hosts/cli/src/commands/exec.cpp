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
      arguments.command.stdin_wanted || (!arguments.command.stdin_refused && ::isatty(0) != 1);
  start_session(app, *session, arguments.env);
  const auto ended = run_foreground(session->sandbox(), options, app.terminal(), app.interrupts());
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
