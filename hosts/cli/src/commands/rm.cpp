#include <filesystem>
#include <fstream>

#include "commands/commands.hpp"
#include "commands/each_session.hpp"

namespace sandforge::cli {
namespace {

namespace fs = std::filesystem;

// Processes of this machine that have the word as an argument: "4711 (sandforge-guest)".
std::string processes_named(const std::string& word) {
  std::string out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc", none)) {
    const auto number = entry.path().filename().string();
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / "cmdline", std::ios::binary);
    std::string program, argument;
    bool named = false;
    for (bool first = true; std::getline(in, argument, '\0'); first = false) {
      if (first) program = fs::path(argument).filename().string();
      named = named || (!first && argument == word);
    }
    if (named) out += (out.empty() ? "" : ", ") + number + " (" + program + ")";
  }
  return out;
}

// How a person finds and ends what stays: once forgotten, no command of ours knows it any more.
std::string what_stays(const SessionRecord& record) {
  std::string out = "\n  its provider is '" + record.provider + "'";
  if (record.sandbox_id) out += ", which knows it as " + record.sandbox_id->str();
  out += ": end it there";
  for (const auto& name : {record.sandbox_id ? record.sandbox_id->str() : std::string(),
                           record.working_directory.value_or("")}) {
    if (name.size() < 2 || name.front() != '/') continue;
    const auto running = processes_named(name);
    if (running.empty()) continue;
    return out + "\n  processes here that belong to it: " + running +
           "; `kill` ends them, with what they run";
  }
  return out;
}

void remove_session(App& app, const SessionId& id, bool force) {
  check_session_id(id).value();
  const auto record = app.store().find(id).value();
  if (!force && !record) throw_error(session_not_found(id));
  try {
    app.manager().destroy(id);
  } catch (const Exception& failure) {
    if (!force) throw;
    app.terminal().warn("the machine of '" + id.str() + "' may be left behind: " +
                        failure.error().message + (record ? what_stays(*record) : ""));
    await_result<void>([&](auto done) { app.manager().async_forget(id, std::move(done)); });
  }
}

}  // namespace

int remove_command(App& app, const RemoveArguments& arguments) {
  return each_session(app, arguments.sessions, "removed",
                      [&](const SessionId& id) { remove_session(app, id, arguments.force); });
}

}  // namespace sandforge::cli
