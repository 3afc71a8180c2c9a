#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "new_session.hpp"

namespace sandforge::cli {

int start_command(App& app, const StartArguments& arguments) {
  const auto opened = open_session(app, arguments.session, true);
  const auto& session = *opened.session;
  StartedInfo info;
  try {
    info = start_session(app, session, arguments.session);
  } catch (const Exception& failure) {
    const bool removed = remove_without_machine(app, opened);
    app.terminal().error(removed ? failure.error() : of_session(failure.error(), session));
    // Its machine may be there: the session stays, so that it can be started again or removed.
    if (!removed && !app.terminal().json() && is_known(app, session))
      app.terminal().note("session " + session.id().str() +
                          " was kept; remove it with: sandforge rm " + session.id().str());
    return failure_code(app, failure.error());
  }
  if (!app.terminal().json())
    return app.terminal().exit_code_after(app.terminal().print(session.id().str() + "\n"));
  json::Object out;
  out.set("session", session.id().str());
  out.set("started", started_json(session, info, opened.warnings));
  return app.terminal().exit_code_after(app.terminal().print_json(out));
}

}  // namespace sandforge::cli
