// How git is called by set-up: its environment, and what its failures mean.
#pragma once

#include <string>
#include <string_view>

#include "sandforge/setup_plan.hpp"

namespace sandforge::setup {

// The environment of a git call. With an authorization it carries the credential, bound to the URL,
// and git reads no configuration of the user and the system.
// Every call: no prompt, only the URL's protocol, nothing of a checkout's own configuration that
// would run a program, no background work that outlives the call.
// invalid "setup.insecure_url": a credential for what is not https (or http to this machine).
Result<EnvMap> git_env(const CloneUrl& url, const Authorization* authorization);

// What may be shown of git's own words: without the credential in any form.
std::string redact(const std::string& text, const Authorization* authorization);

Error git_error(std::string_view what, const std::string& repository, const std::string& text,
                const std::string& stderr_text);

// "sha256:" and the digest of the commands that are not blank, joined by newlines.
std::string commands_digest(const std::vector<std::string>& commands);
std::string plan_digest(const SetupPlan& plan);

}  // namespace sandforge::setup
