#include <algorithm>

#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "new_session.hpp"
#include "sandforge/clock.hpp"
#include "sandforge/support/shell.hpp"
#include "sandforge/support/suggest.hpp"

namespace sandforge::cli {
namespace {

// Of the session, or of one that is never started: its provider has the checkpoints.
std::shared_ptr<Sandbox> sandbox_of(App& app, const SnapshotArguments& arguments) {
  if (arguments.provider.empty())
    return app.manager(setup_options(app, {})).attach(SessionId(arguments.session))->sandbox();
  app.check_configured(arguments.provider);
  const auto setup = app.open_provider(arguments.provider, app.config());
  return Sandbox::create(app.runtime(), setup.backend, {}).value();
}

int list_checkpoints(App& app, Sandbox& sandbox) {
  const auto all = sandbox.list_checkpoints();
  const auto& terminal = app.terminal();
  if (terminal.json()) {
    json::Array out;
    for (const auto& checkpoint : all)
      out.push_back(to_json(checkpoint));
    return terminal.exit_code_after(terminal.print_json(out));
  }
  std::vector<std::vector<std::string>> rows;
  const auto now = system_clock()->now_ns();
  for (const auto& checkpoint : all)
    rows.push_back({checkpoint.name,
                    checkpoint.created_at_ns ? age(*checkpoint.created_at_ns, now) : "-",
                    checkpoint.bytes ? std::to_string(*checkpoint.bytes) : "-"});
  return terminal.exit_code_after(terminal.print_table({"CHECKPOINT", "CREATED", "BYTES"}, rows));
}

// The provider takes the removal of what is gone for done; a person may have mistyped.
int remove_checkpoint(App& app, Sandbox& sandbox, const SnapshotArguments& arguments) {
  const auto& name = *arguments.remove;
  std::vector<std::string> names;
  for (const auto& checkpoint : sandbox.list_checkpoints())
    names.push_back(checkpoint.name);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    const auto nearest = nearest_name(name, names);
    throw_error(Error(Status::not_found,
                      "there is no checkpoint '" + name + "'" +
                          (nearest ? ", did you mean '" + *nearest + "'?" : ""),
                      "snapshot.not_found"));
  }
  sandbox.remove_checkpoint(name);
  const auto& terminal = app.terminal();
  if (!terminal.json()) return terminal.exit_code_after(terminal.print(name + "\n"));
  json::Object out;
  if (arguments.provider.empty()) {
    out.set("session", arguments.session);
  } else {
    out.set("provider", arguments.provider);
  }
  out.set("removed", name);
  return terminal.exit_code_after(terminal.print_json(out));
}

// What makes the next try capture something.
std::string way_out(const std::string& session, bool runs, const std::optional<std::string>& name) {
  const auto id = shell_quote(session);
  const auto snapshot = "sandforge snapshot " + id;
  if (runs) return "give the checkpoint a name: " + snapshot + " --name NAME";
  return "start it, then try again: sandforge start --session " + id + " && " + snapshot +
         (name ? " --name " + shell_quote(*name) : "");
}

// One that captures nothing fails here: who goes on to remove the session must hear of it.
int capture(App& app, const Session& session, const std::optional<std::string>& name) {
  // A machine that runs is this object's after a start; one that does not is left alone.
  const bool runs = session.sandbox()->info().machine.state == MachineState::running;
  if (runs) start_session(app, session);
  SnapshotOptions options;
  options.name = name;
  options.stop = app.interrupts().token();
  const auto result = session.sandbox()->snapshot(std::move(options));
  if (!result.checkpoint) {
    Error error(Status::conflict, "nothing was captured: " + result.why_not,
                "snapshot.nothing_captured");
    error.details.set("hint", way_out(session.id().str(), runs, name));
    throw_error(std::move(error));
  }
  const auto& terminal = app.terminal();
  if (!terminal.json()) {
    for (const auto& warning : result.checkpoint->warnings)
      terminal.warn(warning);
    return terminal.exit_code_after(terminal.print(result.checkpoint->name + "\n"));
  }
  json::Object out;
  out.set("session", session.id().str());
  out.set("checkpoint", to_json(*result.checkpoint));
  return terminal.exit_code_after(terminal.print_json(out));
}

}  // namespace

int snapshot_command(App& app, const SnapshotArguments& arguments) {
  if (arguments.list) return list_checkpoints(app, *sandbox_of(app, arguments));
  if (arguments.remove) return remove_checkpoint(app, *sandbox_of(app, arguments), arguments);
  const auto session = app.manager(setup_options(app, {})).attach(SessionId(arguments.session));
  return capture(app, *session, arguments.name);
}

}  // namespace sandforge::cli
