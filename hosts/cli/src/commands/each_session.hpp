// One action on several sessions: a failure of one keeps none of the others from their turn.
#pragma once

#include <functional>

#include "app.hpp"
#include "exit_codes.hpp"

namespace sandforge::cli {

// `done` is the word for a session on which the action succeeded.
inline int each_session(App& app, const std::vector<std::string>& sessions, const char* done,
                        const std::function<void(const SessionId&)>& action) {
  const auto& terminal = app.terminal();
  int code = kOk;
  int output = kOk;  // told once: the sessions have their turn all the same
  json::Array succeeded, failed;
  for (const auto& name : sessions) {
    if (app.interrupts().caught() != 0) {
      code = kSignalBase + app.interrupts().caught();
      break;
    }
    try {
      action(SessionId(name));
      succeeded.emplace_back(name);
      if (!terminal.json() && output == kOk)
        output = terminal.exit_code_after(terminal.print(name + "\n"));
    } catch (const Exception& failure) {
      code = kFailure;
      json::Object entry;
      entry.set("session", name);
      entry.set("error", to_json(failure.error()));
      failed.emplace_back(std::move(entry));
      if (!terminal.json()) terminal.error(failure.error());
    }
  }
  if (!terminal.json()) return code != kOk ? code : output;
  json::Object out;
  out.set(done, std::move(succeeded));
  out.set("failed", std::move(failed));
  output = terminal.exit_code_after(terminal.print_json(out));
  return code != kOk ? code : output;
}

}  // namespace sandforge::cli
