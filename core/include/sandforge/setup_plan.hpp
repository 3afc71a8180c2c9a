// What set-up has to do in a session: data only, so that it can be stored.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/context.hpp"

namespace sandforge {

struct RepositoryPlan {
  std::string url;        // without credentials; empty: the session's repository access names it
  std::string ref;        // branch, tag, commit or full ref name; empty: the default branch
  std::string directory;  // below the working directory; empty: made of the URL
  std::vector<std::string> setup_commands;  // shell text, run inside the directory
  std::string credential;  // "${NAME}" or "file:PATH" of a token, for hosts that come later
};

struct SetupPlan {
  std::vector<RepositoryPlan> repositories;
  std::vector<std::string> workspace_commands;  // once, at the root, after all repositories
  bool list_form = false;            // made of `repos`: markers for each repository and the root
  bool continue_on_failure = false;  // of the repositories' own commands

  bool empty() const noexcept { return repositories.empty() && workspace_commands.empty(); }
};

json::Value to_json(const SetupPlan& plan);
Result<SetupPlan> parse_setup_plan(const json::Value& value);

// The plan that a context describes; its URLs come from the context's access functions later.
Result<SetupPlan> setup_plan(const SessionContext& context);

// Checks URLs, refs, directories, credentials and commands, trims blank commands, fills in
// directories that can be told from the URL. invalid "setup.bad_url", "setup.bad_ref",
// "setup.bad_directory", "setup.bad_command", "setup.same_directory", "setup.bad_credential" (what
// is no reference is not repeated: it may be the token).
Result<void> normalize(SetupPlan& plan);

// A clone URL in its parts. Accepted: https, http, ssh and file URLs, "user@host:path", and an
// absolute path. Everything else (ext::, a leading '-', control characters) is refused.
struct CloneUrl {
  std::string url;       // for git, without password and, but for ssh, without user
  std::string protocol;  // value of GIT_ALLOW_PROTOCOL: "https", "http", "ssh" or "file"
  std::string host;      // empty for file
  std::optional<Authorization> authorization;  // what the URL carried
};
Result<CloneUrl> parse_clone_url(std::string_view text);

Result<void> check_ref(std::string_view ref);

// Last segment without ".git", other characters than letters, digits, '.', '_' and '-' replaced by
// '-', leading dots removed, "repo" when nothing is left.
std::string repository_directory(std::string_view url);

}  // namespace sandforge
