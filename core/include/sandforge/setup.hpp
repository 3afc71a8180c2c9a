// Set-up of a session: repositories are cloned or fetched and checked out, set-up commands run,
// markers written. It works on any sandbox that has sh and git, through its commands only.
//
// Markers, below the working directory: `.mastra-sandbox/setup` (one repository) or
// `.mastra-sandbox/repos/<directory>` and `.mastra-sandbox/workspace-setup` (list form) hold the
// digest of the commands that ran; `.mastra-sandbox/setup-failed` names repositories whose commands
// failed; `.mastra-bootstrapped` says that everything was done.
//
// A credential reaches git in the environment of the one git process that needs it, never in an
// argument list, a URL, a file or a log. Every repository is fetched before the first command of
// any repository runs, so that no such command can watch for credentials; what it is fetched into
// is made for that, and configuration of the machine's git counts for the rest only. Sessions stop
// their machine before they try again a set-up that began: what its commands left running is gone
// by then. Commands that run as root and change the machine's programs are not guarded against.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sandforge/sandbox.hpp"
#include "sandforge/setup_plan.hpp"

namespace sandforge {

// Access to the repository at this position of the plan, minted when it is needed.
using RepositoryAccessByIndex = std::function<void(std::size_t index, Handler<RepositoryAccess>)>;
// Of a context: its repository_access, or those of its repos.
RepositoryAccessByIndex access_of(std::shared_ptr<const SessionContext> context);

struct SetupStep {
  std::string name;        // "clone", "fetch", "checkout", "setup", "workspace"
  std::string repository;  // directory; empty for the workspace
  std::string text;        // for a person, without credentials
};

struct SetupOptions {
  std::optional<std::chrono::milliseconds> step_timeout;  // of each git call and each command
  // Before each step. On a lane, one call at a time; must not throw.
  std::function<void(const SetupStep&)> on_step;
  // Of git and the commands, both streams. As OutputFn.
  std::function<void(std::string_view)> on_output;
  std::stop_token stop;  // ends the running step: cancelled
};

struct SetupReport {
  bool ran = false;                              // false: everything was done already
  std::vector<std::string> failed_repositories;  // with continue_on_failure
  std::vector<std::string> heads;                // commit of each repository, in plan order
  std::vector<std::string> warnings;
};

struct SetupRequest {
  SetupPlan plan;
  RepositoryAccessByIndex access;  // null: the plan's URLs, without credentials
  // What was booted. A machine that was reattached, and whose set-up is not known to be unfinished,
  // is left alone when it carries `.mastra-bootstrapped` of this plan and its checkouts. On a
  // created one, checkouts of a template or a checkpoint are brought to the ref by force; on a
  // reattached one only where that loses no work.
  StartedInfo started;
  SetupOptions options;
};

// Brings the sandbox to what the plan says. What an earlier attempt or a template did is not done
// again: a matching marker spares the commands unless the checkout moved.
//
// Errors: unsupported "setup.no_git"; invalid "setup.command_failed" (details repository, command,
// exitCode, and of stdout and stderr the last 20 lines, 4 KiB at most), "setup.occupied" (files are
// where the checkout should be) and the reasons of normalize; of git: unauthenticated
// "setup.git_auth", not_found "setup.git_not_found", unavailable "setup.git_unreachable", no_space
// "setup.no_space", invalid "setup.git_failed"; timeout and cancelled.
void async_setup(std::shared_ptr<Sandbox> sandbox, SetupRequest request, Handler<SetupReport> done);

// async_setup as a start hook.
StartHook make_setup_hook(SetupPlan plan, RepositoryAccessByIndex access,
                          SetupOptions options = {});

}  // namespace sandforge
