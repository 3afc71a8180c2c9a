#include "commands/commands.hpp"
#include "commands/each_session.hpp"

namespace sandforge::cli {

int stop_command(App& app, const StopArguments& arguments) {
  return each_session(app, arguments.sessions, "stopped",
                      [&](const SessionId& id) { app.manager().stop(id); });
}

}  // namespace sandforge::cli
