#include "sandforge/context.hpp"

namespace sandforge {

Result<void> check(const SessionContext& context) {
  const auto refuse = [](std::string message, std::string_view field) {
    Error error(Status::invalid, std::move(message), "context.exclusive_fields");
    error.details.set("field", field);
    return error;
  };
  if (context.repos && context.repository_access)
    return refuse("repos and getRepositoryAccess exclude each other", "repos");
  if (!context.repos && !context.workspace_setup_commands.empty())
    return refuse("workspaceSetupCommand needs repos", "workspaceSetupCommand");
  if (!context.repos && context.continue_on_setup_failure)
    return refuse("continueOnSetupFailure needs repos", "continueOnSetupFailure");
  return {};
}

}  // namespace sandforge
