#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "new_session.hpp"
#include "sandforge/clock.hpp"

namespace sandforge::cli {
namespace {

int list_checkpoints(App& app, const Session& session) {
  const auto all = session.sandbox()->list_checkpoints();
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

int remove_checkpoint(App& app, const Session& session, const std::string& name) {
  session.sandbox()->remove_checkpoint(name);
  const auto& terminal = app.terminal();
  if (!terminal.json()) return terminal.exit_code_after(terminal.print(name + "\n"));
  json::Object out;
  out.set("session", session.id().str());
  out.set("removed", name);
  return terminal.exit_code_after(terminal.print_json(out));
}

// One that captures nothing fails here: who goes on to remove the session must hear of it.
int capture(App& app, const Session& session, const std::optional<std::string>& name) {
  // A machine that runs is this object's after a start; one that does not is left alone.
  if (session.sandbox()->info().machine.state == MachineState::running) start_session(app, session);
  SnapshotOptions options;
  options.name = name;
  options.stop = app.interrupts().token();
  const auto result = session.sandbox()->snapshot(std::move(options));
  if (!result.checkpoint)
    throw_error(Error(Status::conflict, "nothing was captured: " + result.why_not,
                      "snapshot.nothing_captured"));
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
  const auto session = app.manager(setup_options(app, {})).attach(SessionId(arguments.session));
  if (arguments.list) return list_checkpoints(app, *session);
  if (arguments.remove) return remove_checkpoint(app, *session, *arguments.remove);
  return capture(app, *session, arguments.name);
}

}  // namespace sandforge::cli
