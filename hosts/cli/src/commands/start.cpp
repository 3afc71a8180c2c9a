#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "new_session.hpp"

namespace sandforge::cli {
namespace {

std::string kept(const Session& session) {
  const auto name = session.id().str();
  return "session " + name + " was kept; remove it with: sandforge rm " + name;
}

}  // namespace

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
      app.terminal().note(kept(session));
    return failure_code(app, failure.error());
  }
  if (!app.terminal().json()) {
    const int code =
        app.terminal().exit_code_after(app.terminal().print(session.id().str() + "\n"));
    // Nobody has read its name.
    if (code == kFailure) app.terminal().note(kept(session));
    return code;
  }
  json::Object out;
  out.set("session", session.id().str());
  out.set("started", started_json(session, info, opened.warnings));
  return app.terminal().exit_code_after(app.terminal().print_json(out));
}

}  // namespace sandforge::cli
