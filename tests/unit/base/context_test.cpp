#include "sandforge/context.hpp"

#include <catch2/catch.hpp>

using namespace sandforge;

namespace {

std::string refused_field(const SessionContext& context) {
  const auto result = check(context);
  if (result) return "";
  CHECK(result.error().code == Status::invalid);
  CHECK(result.error().reason == "context.exclusive_fields");
  return result.error().details.find("field")->as_string();
}

}  // namespace

TEST_CASE("a context that holds only ids is fine, and one that holds nothing") {
  SessionContext context;
  CHECK(refused_field(context).empty());
  context.session_id = SessionId("s");
  context.sandbox_id = ProviderSandboxId("p");
  CHECK(refused_field(context).empty());
}

TEST_CASE("fields that exclude each other, or need each other, are typed errors") {
  SessionContext both;
  both.repos.emplace();
  both.repository_access = [](Handler<RepositoryAccess>) {};
  CHECK(refused_field(both) == "repos");
  SessionContext workspace;
  workspace.workspace_setup_commands = {"make"};
  CHECK(refused_field(workspace) == "workspaceSetupCommand");
  SessionContext going_on;
  going_on.continue_on_setup_failure = true;
  CHECK(refused_field(going_on) == "continueOnSetupFailure");
  workspace.repos.emplace();
  workspace.continue_on_setup_failure = false;
  CHECK(refused_field(workspace).empty());
}
