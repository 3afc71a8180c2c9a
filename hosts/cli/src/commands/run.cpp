#include <cerrno>

#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "foreground.hpp"
#include "new_session.hpp"

namespace sandforge::cli {
namespace {

// The session's end, whatever happened before; one that another call has open is left to that. A
// failure to remove it is told, and counts where nothing else went wrong.
int clean_up(App& app, const Session& session, int code) {
  try {
    const bool removed = app.manager().remove_unused(session.id());
    app.interrupts().say_at_exit({});
    if (removed) return code;
    const auto text = "session " + session.id().str() + " stays: another call has it open";
    if (app.terminal().json()) {
      app.terminal().warn(text);
    } else {
      app.terminal().note(text);
    }
    return code;
  } catch (const Exception& failure) {
    auto error = failure.error();
    error.message = "the session '" + session.id().str() + "' was not removed: " + error.message;
    if (app.terminal().json()) {
      app.terminal().warn(error.message);
    } else {
      app.terminal().error(error);
    }
    return code == kOk ? kFailure : code;
  }
}

int run_in(App& app, const RunArguments& arguments, const NewSession& opened, bool stays) {
  const auto& session = *opened.session;
  const auto info = start_session(app, session, arguments.session);
  if (stays && !app.terminal().json()) app.terminal().note("session " + session.id().str());

  ForegroundOptions options;
  options.command = arguments.command;
  options.default_cwd = default_cwd(session.record());
  options.capture = app.terminal().json();
  options.stdin_open = arguments.command.stdin_wanted;
  const auto ended = run_foreground(session.sandbox(), options, app.terminal(), app.interrupts());

  if (app.terminal().json()) {
    json::Object out;
    out.set("session", session.id().str());
    out.set("kept", stays);
    out.set("started", started_json(session, info, opened.warnings));
    out.set("result", result_json(ended.result));
    if (!app.terminal().print_json(out) && errno != ECANCELED)
      return app.terminal().exit_code_after(false);
  } else {
    tell_end(app, session, ended);
  }
  return exit_code_of(ended, app.interrupts());
}

// Who ends a session's processes holds its claim until the record says so.
std::optional<std::string> ended_by_another_call(App& app, const SessionId& id) {
  const auto found = app.store().find(id);
  if (!found) return std::nullopt;
  const auto text = [](const char* what) {
    return "the command was ended: another call " + std::string(what) + " the session";
  };
  if (!*found) return text("has removed");
  if ((*found)->status == SessionStatus::stopped) return text("has stopped");
  if ((*found)->claim && (*found)->status != SessionStatus::starting)
    return text("stops or removes");
  return std::nullopt;
}

}  // namespace

void tell_end(App& app, const Session& session, const ForegroundResult& ended) {
  if (ended.output_error) return app.terminal().error(*ended.output_error);
  if (ended.dropped) app.terminal().note("output that nobody read was dropped");
  if (ended.broken_pipe || app.interrupts().caught() != 0) return;
  const auto& result = ended.result;
  switch (result.outcome) {
    case Outcome::exited:
      return;
    case Outcome::signaled:
      if (const auto why = ended_by_another_call(app, session.id())) app.terminal().note(*why);
      return;
    case Outcome::timed_out:
      return app.terminal().note("the command took too long and was ended");
    case Outcome::out_of_memory:
      return app.terminal().note("the command was ended: out of memory");
    default:
      app.terminal().error(result.error.value_or(Error(
          Status::unavailable,
          "how the command ended is not known (" + std::string(to_string(result.outcome)) + ")")));
  }
}

int run_command(App& app, const RunArguments& arguments) {
  const auto opened = open_session(app, arguments.session, arguments.keep);
  const bool stays = arguments.keep || opened.existed;
  int code = kFailure;
  try {
    code = run_in(app, arguments, opened, stays);
  } catch (const Exception& failure) {
    const bool left = stays && !remove_without_machine(app, opened);
    app.terminal().error(left ? of_session(failure.error(), *opened.session) : failure.error());
    code = failure_code(app, failure.error());
    if (left && !app.terminal().json() && is_known(app, *opened.session))
      app.terminal().note("session " + opened.session->id().str());
  } catch (const std::exception&) {
    if (!stays) clean_up(app, *opened.session, kFailure);
    throw;
  }
  return stays ? code : clean_up(app, *opened.session, code);
}

}  // namespace sandforge::cli
