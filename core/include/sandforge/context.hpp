// What a host knows about the session that a sandbox belongs to.
// Source: FactorySandboxContext of the FactorySandbox document.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sandforge/command.hpp"
#include "sandforge/handler.hpp"
#include "sandforge/ids.hpp"

namespace sandforge {

struct Authorization {
  std::string scheme = "bearer";
  std::string token;  // secret
  std::string username;
};

struct RepositoryAccess {
  std::string clone_url;
  std::optional<Authorization> authorization;
};

// Called late, once per need: the tokens it mints are short-lived.
using RepositoryAccessFn = std::function<void(Handler<RepositoryAccess>)>;
// Commit of a clone URL, or nothing: the provider resolves the default branch itself.
using ResolveHeadFn = std::function<void(std::string clone_url, std::string token,
                                         Handler<std::optional<std::string>>)>;

struct SessionRepository {
  RepositoryAccessFn access;
  std::vector<std::string> setup_commands;
};

struct SessionContext {
  SessionContext() = default;
  std::optional<SessionId> session_id;
  std::optional<ProviderSandboxId> sandbox_id;  // kept from an earlier start
  std::optional<std::string> factory_id;
  std::optional<std::string> factory_name;  // display only
  std::optional<std::string> repo_full_name;
  std::optional<std::string> setup_command;
  RepositoryAccessFn repository_access;  // null: no repository, or repos is used
  std::optional<std::vector<SessionRepository>> repos;
  std::vector<std::string> workspace_setup_commands;
  std::optional<bool> continue_on_setup_failure;
  std::optional<std::string> working_directory;
  ResolveHeadFn resolve_head;
  // The sandbox's environment, evaluated by core for each start. Null: the provider's own rule.
  std::function<std::optional<EnvMap>(const SessionContext&)> env;
  bool caller_chose_id = false;  // only then are there checkpoints
  bool is_session = true;        // else a bare sandbox
};

// repos and repository_access exclude each other; workspace_setup_commands and
// continue_on_setup_failure need repos.
Result<void> check(const SessionContext& context);

}  // namespace sandforge
