// Making and starting the session that run and start are about.
#pragma once

#include <memory>

#include "app.hpp"
#include "foreground.hpp"

namespace sandforge::cli {

struct NewSession {
  std::shared_ptr<Session> session;
  bool existed = false;               // before this call
  std::vector<std::string> warnings;  // told already, but where the answer is JSON
};

// Opens it, without starting it. keep: also a `run` that made it leaves it. Throws the Error.
NewSession open_session(App& app, const SessionArguments& arguments, bool keep);

// Starts it, with steps of set-up on standard error. An interrupt ends the set-up. Warns of the
// variables whose values neither this host nor the machine has; `given` to this command are known.
StartedInfo start_session(App& app, const Session& session,
                          const std::vector<SessionVariable>& given = {});

// The same, from the checkpoint that the arguments name, where one has to be made. Warns where it
// was there.
StartedInfo start_session(App& app, const Session& session, const SessionArguments& arguments);

// Set-up options that tell of their steps as the arguments want it.
SetupOptions setup_options(App& app, const SessionArguments& arguments);

// After a start that failed: removes what this call has recorded, where no machine was made of it.
// False: the session stays, if it is still there.
bool remove_without_machine(App& app, const NewSession& opened);

// Whether it is still there: another call may have removed it.
bool is_known(App& app, const Session& session);

// Where commands run unless they say otherwise: inside the repository if there is exactly one.
std::optional<std::string> default_cwd(const SessionRecord& record);

// Why a command ended, where its exit code does not tell a person.
void tell_end(App& app, const Session& session, const ForegroundResult& ended);

// For JSON, whose strings are UTF-8: other output is there byte by byte as well.
json::Object result_json(const CommandResult& result);

json::Object started_json(const Session& session, const StartedInfo& info,
                          const std::vector<std::string>& more_warnings);

// The error with the id of the session that it leaves behind, for JSON.
Error of_session(Error error, const Session& session);

// What to exit with after a failure, which an interrupt may have caused.
int failure_code(App& app, const Error& error) noexcept;

}  // namespace sandforge::cli
