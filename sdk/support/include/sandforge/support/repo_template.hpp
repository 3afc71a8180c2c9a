// The template of a session with repositories, as a plan that knows no provider, and the operations
// that providers make of it.
//
//   RepoRequest (what the session wants) → RepoResolver (repo_resolver.hpp: access and heads)
//     → RepoPlan (data) → repo_template (operations by the provider's RepoStyle)
//
// Markers, below the working directory, are those of a session's set-up, which does not do again
// what a template did: `.mastra-sandbox/setup` (one repository), or for a list
// `.mastra-sandbox/repos/<directory>`, `.mastra-sandbox/workspace-setup`, and
// `.mastra-sandbox/setup-failed` with the directories whose commands failed, one per line.
//
// Source: createRepoTemplate of Mastra's Platform, Docker and E2B workspaces. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "template.hpp"

namespace sandforge {

// A repository, as far as it is known before its access was asked for.
struct RepoWish {
  std::vector<std::string>
      setup_commands;  // shell text, run in the checkout; blank ones are dropped
  std::string ref;     // branch, tag, full ref name or commit; empty: the default branch
};

// repository and repositories exclude each other; the two fields after them need repositories.
// Like the others that a coroutine may be given, no aggregate.
struct RepoRequest {
  RepoRequest() {}
  std::optional<RepoWish> repository;
  std::optional<std::vector<RepoWish>> repositories;
  std::optional<std::vector<std::string>> workspace_commands;  // once, after all repositories
  std::optional<bool> continue_on_failure;                     // of the repositories' own commands
  std::optional<std::string> working_directory;                // absolute
  TemplateResources resources;
  std::map<std::string, std::string> build_env;
};

// What providers allow.
struct RepoRules {
  RepoRules() {}
  enum class Urls : std::uint8_t {
    https,  // what a builder far away can be given
    any     // and http, ssh, file and user@host:path
  };
  Urls urls = Urls::https;
  // For builders whose steps are lines of a file: a newline in a command only behind a backslash.
  bool single_line_commands = false;
  // A repository whose head nobody can tell: no template, or one that is not pinned to a commit.
  enum class UnknownHead : std::uint8_t { no_template, unpinned };
  UnknownHead unknown_head = UnknownHead::no_template;
  std::string working_directory;  // where the request names none; empty: the base image's
};

// Drops blank commands and slashes at the end, and refuses what is wrong: TemplateError exclusive,
// bad_ref, bad_path, bad_command, and what Template refuses of build_env and resources.
void check(RepoRequest& request, const RepoRules& rules);

struct PlannedRepository {
  std::size_t index = 0;            // position in the request; 0 in the form of one
  std::string url;                  // normal: without credentials, ".git" and slashes at its end
  std::string directory;            // one segment, below the working directory
  std::optional<std::string> head;  // 7 to 40 hex digits; absent: not pinned
  std::string ref;
  std::vector<std::string> setup_commands;
  std::string token;     // secret, in no text; empty: public
  std::string username;  // that belongs to the token
};

struct RepoPlan {
  RepoPlan() {}
  bool list_form = false;
  std::vector<PlannedRepository> repositories;  // as in the request
  std::vector<std::string> workspace_commands;
  bool continue_on_failure = false;
  std::string working_directory;  // empty: the base image's
  TemplateResources resources;
  std::map<std::string, std::string> build_env;
  std::string family;  // URLs, directories and their order: no commit, no command, no size
};

// TemplateFault::bad_url. Scheme and host in lower case, no slash and no ".git" at the end. Nothing
// that a shell or git could read as something else; never a credential.
std::string normal_clone_url(std::string_view url, RepoRules::Urls allowed);
// Its last segment, fit for a folder: "repo" when nothing is left.
std::string clone_directory(std::string_view url);
bool is_commit(std::string_view text) noexcept;  // 7 to 40 hex digits
std::string repo_family(const RepoPlan& plan);
// "sha256:" and the hash of the commands, joined by newlines.
std::string setup_marker(const std::vector<std::string>& commands);

// How a provider's builder wants it. The steps in common: working directory, build environment, for
// each repository clone, pin, set-up commands and marker, then the workspace. All private clones
// come before any command of a repository.
struct RepoStyle {
  RepoStyle() {}
  enum class Steps : std::uint8_t {
    // Each clone is a step of its own that leaves nothing but the checkout; the token is its secret
    // NAME_i. Full clones.
    isolated,
    // Shallow clones without the commit first, so that they are cached across commits; the token is
    // an ephemeral variable NAME_i of the whole build, which the commands of repositories drop.
    layered
  };
  Steps steps = Steps::isolated;
  std::string token_name = "GH_TOKEN";  // with "_<index>" in the list form
  bool setup_twice = false;  // layered, public repositories: before the pin, too, for the cache
  bool ephemeral_build_env = false;  // else it is part of the template
  bool install_git = false;          // where the base may lack it
  std::string owner;                 // isolated: of checkouts
};

// The operations of the plan behind those of `base`, with the plan's sizes and family. Secrets of
// isolated steps come by repo_secrets; of layered ones they are the template's ephemeral values.
Template repo_template(const RepoPlan& plan, const RepoStyle& style,
                       const Template& base = Template());
// Values by name, secret.
std::map<std::string, std::string> repo_secrets(const RepoPlan& plan, const RepoStyle& style);

}  // namespace sandforge
