#include "commands/commands.hpp"
#include "commands/each_session.hpp"

namespace sandforge::cli {
namespace {

void remove_session(App& app, const SessionId& id, bool force) {
  check_session_id(id).value();
  if (!force && !app.store().find(id).value()) throw_error(session_not_found(id));
  try {
    app.manager().destroy(id);
  } catch (const Exception& failure) {
    if (!force) throw;
    app.terminal().warn("the machine of '" + id.str() +
                        "' may be left behind: " + failure.error().message);
    await_result<void>([&](auto done) { app.manager().async_forget(id, std::move(done)); });
  }
}

}  // namespace

int remove_command(App& app, const RemoveArguments& arguments) {
  return each_session(app, arguments.sessions, "removed",
                      [&](const SessionId& id) { remove_session(app, id, arguments.force); });
}

}  // namespace sandforge::cli
