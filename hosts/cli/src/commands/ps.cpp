#include "commands/commands.hpp"
#include "commands/known_sessions.hpp"
#include "commands/processes.hpp"
#include "exit_codes.hpp"
#include "sandforge/clock.hpp"

namespace sandforge::cli {
namespace {

// A look starts no machine, and changes no record. A machine that cannot be asked keeps its status,
// and its error is told.
int check_sessions(App& app, std::vector<SessionRecord>& sessions) {
  int code = kOk;
  for (SessionRecord& record : sessions) {
    if (record.status != SessionStatus::running) continue;
    try {
      const auto sandbox = app.manager().attach(record.id)->sandbox();
      const MachineState state = sandbox->info().machine.state;
      if (state == MachineState::stopped) record.status = SessionStatus::stopped;
      if (state == MachineState::absent) {
        record.status = SessionStatus::created;
        record.sandbox_id.reset();
      }
    } catch (const Exception& failure) {
      code = kFailure;
      app.terminal().error(failure.error());
    }
  }
  return code;
}

int list_sessions(App& app, bool check) {
  auto sessions = all_sessions(app.store());
  const int checked = check ? check_sessions(app, sessions) : kOk;
  const auto code_after = [&](auto printed) {
    const int code = app.terminal().exit_code_after(printed);
    return code != kOk ? code : checked;
  };
  if (app.terminal().json()) {
    json::Array out;
    for (const auto& record : sessions)
      out.push_back(to_json(record));
    return code_after(app.terminal().print_json(out));
  }
  std::vector<std::vector<std::string>> rows;
  const auto now = system_clock()->now_ns();
  for (const auto& record : sessions)
    rows.push_back({record.id.str(), record.provider, std::string(to_string(record.status)),
                    std::string(to_string(record.setup)), age(record.created_at_ns, now),
                    age(record.last_used_at_ns, now),
                    record.sandbox_id ? record.sandbox_id->str() : "-"});
  return code_after(app.terminal().print_table(
      {"SESSION", "PROVIDER", "STATUS", "SETUP", "CREATED", "USED", "MACHINE"}, rows));
}

json::Object to_object(const ProcessInfo& process) {
  json::Object out;
  out.set("id", process.id.str());
  out.set("pid", static_cast<long long>(process.pid));
  out.set("command", process.command);
  out.set("running", process.running);
  if (!process.tag.empty()) out.set("tag", process.tag);
  if (process.detached) out.set("detached", true);
  if (process.stray) out.set("stray", true);
  if (process.exit && process.exit->code) out.set("exitCode", *process.exit->code);
  return out;
}

std::string state_of(const ProcessInfo& process) {
  if (process.running) return process.stray ? "stray" : "running";
  if (process.exit && process.exit->code) return "exited " + std::to_string(*process.exit->code);
  return "ended";
}

// A look at a session must not start its machine.
std::vector<ProcessInfo> processes_of(App& app, const std::string& id) {
  const auto sandbox = running_sandbox(app, id);
  return sandbox ? sandbox->list_processes() : std::vector<ProcessInfo>();
}

}  // namespace

int ps_command(App& app, const PsArguments& arguments) {
  if (arguments.session.empty()) return list_sessions(app, arguments.check);
  const auto processes = processes_of(app, arguments.session);
  if (app.terminal().json()) {
    json::Array out;
    for (const auto& process : processes)
      out.push_back(to_object(process));
    return app.terminal().exit_code_after(app.terminal().print_json(out));
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& process : processes)
    rows.push_back(
        {process.id.str(), std::to_string(process.pid), state_of(process), process.command});
  return app.terminal().exit_code_after(
      app.terminal().print_table({"ID", "PID", "STATE", "COMMAND"}, rows));
}

}  // namespace sandforge::cli
