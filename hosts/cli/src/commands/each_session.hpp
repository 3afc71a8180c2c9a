// One action on several sessions: a failure of one keeps none of the others from their turn.
#pragma once

#include <functional>

#include "app.hpp"
#include "exit_codes.hpp"

namespace sandforge::cli {

// `done` is the word for a session on which the action succeeded.
inline int each_session(App& app, const std::vector<std::string>& sessions, const char* done,
                        const std::function<void(const SessionId&)>& action) {
  int code = kOk;
  json::Array succeeded, failed;
  for (const auto& name : sessions) {
    if (app.interrupts().caught() != 0) return kSignalBase + app.interrupts().caught();
    try {
      action(SessionId(name));
      succeeded.emplace_back(name);
      if (!app.terminal().json() && !app.terminal().print(name + "\n")) return kBrokenPipe;
    } catch (const Exception& failure) {
      code = kFailure;
      json::Object entry;
      entry.set("session", name);
      entry.set("error", to_json(failure.error()));
      failed.emplace_back(std::move(entry));
      if (!app.terminal().json()) app.terminal().error(failure.error());
    }
  }
  if (!app.terminal().json()) return code;
  json::Object out;
  out.set(done, std::move(succeeded));
  out.set("failed", std::move(failed));
  return app.terminal().print_json(out) ? code : kBrokenPipe;
}

}  // namespace sandforge::cli
