// The order of set-up: is it done already? Then every repository is fetched and checked out, then
// the commands of each, then those of the workspace, then the marker of the whole.
#include <algorithm>
#include <set>
#include <sstream>

#include "sandbox/lane_handler.hpp"
#include "sandforge/setup.hpp"
#include "session/setup_git.hpp"
#include "session/setup_scripts.hpp"

namespace sandforge {
namespace {

using namespace setup;

constexpr std::size_t kRetained = 64U << 10;
constexpr std::size_t kShown = 4U << 10;
constexpr std::size_t kShownLines = 20;  // of each stream of a command

// Lines "key value" of a script.
std::optional<std::string> answer(const std::string& out, std::string_view key) {
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line == key) return std::string();
    if (line.size() > key.size() && line.compare(0, key.size(), key) == 0 &&
        line[key.size()] == ' ')
      return line.substr(key.size() + 1);
  }
  return std::nullopt;
}

std::string tail(const std::string& text) {
  return text.size() <= kShown ? text : text.substr(text.size() - kShown);
}

// What a person needs of it to see why the command failed.
std::string last_lines(const std::string& text) {
  std::string out = tail(text);
  std::size_t start = out.size();
  for (std::size_t lines = 0; start > 0 && lines < kShownLines; ++lines) {
    const auto newline = start < 2 ? std::string::npos : out.rfind('\n', start - 2);
    start = newline == std::string::npos ? 0 : newline + 1;
  }
  // A line that was cut is none, unless there is no other.
  if (start == 0 && out.size() < text.size())
    if (const auto end = out.find('\n'); end + 1 < out.size()) start = end + 1;
  return out.substr(start);
}

void tell_output(Error& error, const std::string& command, const CommandResult& result) {
  error.details.set("command", redact(command, nullptr));
  error.details.set("stdout", redact(last_lines(result.out), nullptr));
  error.details.set("stderr", redact(last_lines(result.err), nullptr));
}

std::vector<std::string> script(const char* text, std::vector<std::string> arguments) {
  std::vector<std::string> argv = {"sh", "-c", text, "sandforge-setup"};
  argv.insert(argv.end(), std::make_move_iterator(arguments.begin()),
              std::make_move_iterator(arguments.end()));
  return argv;
}

// An end that is no exit of the command.
Error not_exited(const CommandResult& result, const std::string& what) {
  if (result.error) return *result.error;
  switch (result.outcome) {
    case Outcome::timed_out:
      return Error(Status::timeout, what + " took too long", "setup.timeout");
    case Outcome::cancelled:
      return Error(Status::cancelled, what + " was cancelled", "setup.cancelled");
    case Outcome::destroyed:
      return Error(Status::gone, what + " ended with its sandbox", "setup.destroyed");
    case Outcome::transport_lost:
      return Error(Status::transport_lost, what + " was lost", "setup.transport_lost");
    default:
      return Error(Status::internal, what + " ended: " + std::string(to_string(result.outcome)),
                   "setup.ended");
  }
}

class SetupRun : public std::enable_shared_from_this<SetupRun> {
 public:
  SetupRun(std::shared_ptr<Sandbox> sandbox, SetupRequest request, Handler<SetupReport> done)
      : sandbox_(std::move(sandbox)), request_(std::move(request)), done_(std::move(done)) {}

  void run() {
    if (auto ok = normalize(request_.plan); !ok) return fail(std::move(ok).error());
    if (request_.plan.empty()) return finish();
    repositories_.resize(request_.plan.repositories.size());
    force_ = request_.started.outcome == StartOutcome::created;
    if (request_.started.outcome == StartOutcome::created || request_.started.setup_unfinished)
      return fetch(0);
    probe();
  }

 private:
  struct Repository {
    std::string directory;
    CloneUrl url;
    std::optional<Authorization> authorization;  // for the copy only
    std::string commit;
    std::string kind;
    bool marked = false;
    bool failed = false;
  };
  using Next = std::function<void(const CommandResult&)>;

  const SetupPlan& plan() const { return request_.plan; }

  // ---- One command

  void step(std::string name, const std::string& repository, std::string text) {
    if (request_.options.on_step)
      request_.options.on_step(SetupStep{std::move(name), repository, std::move(text)});
  }

  // `next` gets only what exited; everything else fails the set-up.
  void exec(std::vector<std::string> argv, EnvMap env, std::optional<std::string> cwd, bool show,
            std::string what, Next next) {
    ExecOptions options;
    options.timeout = request_.options.step_timeout.value_or(std::chrono::milliseconds(0));
    options.env = std::move(env);
    options.cwd = std::move(cwd);
    options.stop = request_.options.stop;
    options.max_retained_bytes = kRetained;
    if (request_.options.on_output) {
      options.on_stderr = request_.options.on_output;
      if (show) options.on_stdout = request_.options.on_output;
    }
    auto self = shared_from_this();
    const auto command = show ? argv.back() : std::string();
    sandbox_->async_exec(std::move(argv), std::move(options),
                         [self, command, what = std::move(what),
                          next = std::move(next)](Result<CommandResult> result) {
                           if (!result) return self->fail(std::move(result).error());
                           if (result->outcome == Outcome::exited) return next(*result);
                           auto error = not_exited(*result, what);
                           if (!command.empty()) tell_output(error, command, *result);
                           self->fail(std::move(error));
                         });
  }

  void run_script(const char* text, std::vector<std::string> arguments, std::string what,
                  Next next) {
    exec(script(text, std::move(arguments)), {}, std::nullopt, false, std::move(what),
         std::move(next));
  }

  // ---- Is it done already?

  void probe() {
    std::vector<std::string> arguments = {plan_digest(plan())};
    for (const auto& repository : plan().repositories)
      if (!repository.directory.empty()) arguments.push_back(repository.directory);
    auto self = shared_from_this();
    run_script(kProbe, std::move(arguments), "the look at the markers",
               [self](const CommandResult& result) {
                 if (result.success) return self->finish();
                 self->fetch(0);
               });
  }

  // ---- Repositories

  void fetch(std::size_t i) {
    if (i == repositories_.size()) return run_commands(0);
    report_.ran = true;
    if (!request_.access) {
      RepositoryAccess access;
      access.clone_url = plan().repositories[i].url;
      return with_access(i, std::move(access));
    }
    auto self = shared_from_this();
    const auto asked = sandbox::contained("the repository access function", [&] {
      request_.access(i, [self, i](Result<RepositoryAccess> access) {
        if (!access) return self->fail(std::move(access).error());
        self->with_access(i, std::move(access).value());
      });
    });
    if (!asked) fail(asked.error());
  }

  void with_access(std::size_t i, RepositoryAccess access) {
    auto url = parse_clone_url(access.clone_url);
    if (!url) return fail(std::move(url).error());
    auto& repository = repositories_[i];
    repository.url = *url;
    repository.authorization =
        access.authorization ? std::move(access.authorization) : url->authorization;
    repository.directory = plan().repositories[i].directory;
    if (repository.directory.empty()) repository.directory = repository_directory(url->url);
    if (!directories_.insert(repository.directory).second)
      return fail(Error(Status::invalid,
                        "two repositories would both clone into '" + repository.directory + "'",
                        "setup.same_directory"));
    const auto* authorization = repository.authorization ? &*repository.authorization : nullptr;
    auto env = git_env(repository.url, authorization);
    if (!env) return fail(std::move(env).error());
    step("fetch", repository.directory, "Fetching " + repository.url.url);
    if (authorization == nullptr) return fetch_here(i, std::move(*env), "");
    auto self = shared_from_this();
    exec(script(kCopy, {repository.url.url, repository.directory, plan().repositories[i].ref}),
         std::move(*env), std::nullopt, false, "fetching " + repository.directory,
         [self, i](const CommandResult& result) { self->copied(i, result); });
  }

  void copied(std::size_t i, const CommandResult& result) {
    auto& repository = repositories_[i];
    const auto words = redact(tail(result.err), &*repository.authorization);
    repository.authorization.reset();
    if (!result.success) return fail(fetch_error(i, answer(result.out, "error"), words));
    CloneUrl copy;
    copy.protocol = "file";
    auto env = git_env(copy, nullptr);
    if (!env) return fail(std::move(env).error());
    fetch_here(i, std::move(*env), "copy");
  }

  void fetch_here(std::size_t i, EnvMap env, const std::string& from) {
    auto self = shared_from_this();
    const auto& repository = repositories_[i];
    exec(script(kFetch,
                {repository.url.url, repository.directory, plan().repositories[i].ref, from}),
         std::move(env), std::nullopt, false, "fetching " + repository.directory,
         [self, i](const CommandResult& result) { self->fetched(i, result); });
  }

  void fetched(std::size_t i, const CommandResult& result) {
    auto& repository = repositories_[i];
    if (!result.success) return fail(fetch_error(i, answer(result.out, "error"), tail(result.err)));
    repository.kind = answer(result.out, "kind").value_or("default");
    repository.commit = answer(result.out, "commit").value_or("");
    checkout(i);
  }

  Error fetch_error(std::size_t i, const std::optional<std::string>& kind,
                    const std::string& words) const {
    const auto& directory = repositories_[i].directory;
    if (kind == "no_git")
      return Error(Status::unsupported,
                   "there is no git in the sandbox, and the session has a repository",
                   "setup.no_git");
    if (kind == "old_git")
      return Error(Status::unsupported,
                   "the git in the sandbox is older than 2.32 and cannot be given a credential "
                   "safely",
                   "setup.old_git");
    if (kind == "occupied")
      return Error(Status::invalid,
                   "'" + directory + "' is there already and is no checkout of a repository",
                   "setup.occupied");
    if (kind == "no_ref") {
      auto error = git_error("find a ref of", directory,
                             "there is no '" + plan().repositories[i].ref + "'", words);
      if (error.reason == "setup.git_failed" || error.code == Status::not_found) {
        error.code = Status::not_found;
        error.reason = "setup.no_ref";
      }
      return error;
    }
    return git_error("fetch", directory, "", words);
  }

  std::string marker_of(std::size_t i) const {
    return plan().list_form ? ".mastra-sandbox/repos/" + repositories_[i].directory
                            : ".mastra-sandbox/setup";
  }

  void checkout(std::size_t i) {
    auto& repository = repositories_[i];
    const auto& planned = plan().repositories[i];
    step("checkout", repository.directory,
         "Checking out " + (planned.ref.empty() ? "the default branch" : planned.ref));
    auto env = git_env(repository.url, nullptr);
    if (!env) return fail(std::move(env).error());
    auto self = shared_from_this();
    exec(script(kCheckout,
                {repository.directory, repository.kind, planned.ref, repository.commit,
                 force_ ? "force" : "", marker_of(i), commands_digest(planned.setup_commands)}),
         std::move(*env), std::nullopt, false, "the checkout of " + repository.directory,
         [self, i](const CommandResult& result) { self->checked_out(i, result); });
  }

  void checked_out(std::size_t i, const CommandResult& result) {
    auto& repository = repositories_[i];
    if (!result.success)
      return fail(git_error("check out", repository.directory, "", tail(result.err)));
    report_.heads.push_back(answer(result.out, "head").value_or(""));
    if (const auto kept = answer(result.out, "kept"))
      report_.warnings.push_back("'" + repository.directory + "' was left as it is: it has " +
                                 *kept);
    repository.marked = answer(result.out, "marked").has_value();
    fetch(i + 1);
  }

  // ---- Commands of the repositories

  void run_commands(std::size_t i) {
    while (i < repositories_.size() && repositories_[i].marked)
      ++i;
    if (i == repositories_.size()) return check_workspace();
    commands_ran_ = true;
    run_command(i, 0);
  }

  void run_command(std::size_t i, std::size_t c) {
    auto& repository = repositories_[i];
    const auto& commands = plan().repositories[i].setup_commands;
    if (c == commands.size()) return mark_repository(i);
    step("setup", repository.directory, commands[c]);
    auto self = shared_from_this();
    exec({"sh", "-c", commands[c]}, {}, repository.directory, true,
         "the set-up of " + repository.directory, [self, i, c](const CommandResult& result) {
           if (result.success) return self->run_command(i, c + 1);
           if (!self->plan().continue_on_failure)
             return self->fail(self->command_error(self->repositories_[i].directory, c,
                                                   self->plan().repositories[i].setup_commands[c],
                                                   result));
           // The others still run, as in a template's steps.
           self->repositories_[i].failed = true;
           self->run_command(i, c + 1);
         });
  }

  Error command_error(const std::string& repository, std::size_t index, const std::string& command,
                      const CommandResult& result) const {
    const auto where = repository.empty() ? std::string("the workspace") : "'" + repository + "'";
    Error error(Status::invalid,
                "set-up command " + std::to_string(index + 1) + " of " + where +
                    " failed with exit code " + std::to_string(result.exit_code.value_or(-1)),
                "setup.command_failed");
    if (!repository.empty()) error.details.set("repository", repository);
    error.details.set("exitCode", result.exit_code.value_or(-1));
    tell_output(error, command, result);
    return error;
  }

  void mark_repository(std::size_t i) {
    const auto& repository = repositories_[i];
    if (repository.failed) report_.failed_repositories.push_back(repository.directory);
    auto self = shared_from_this();
    run_script(kFailed, {repository.directory, repository.failed ? "add" : "remove"},
               "the list of failed repositories", [self, i](const CommandResult& result) {
                 if (!result.success) return self->fail(marker_error(result));
                 self->mark(self->marker_of(i),
                            commands_digest(self->plan().repositories[i].setup_commands),
                            [self, i] { self->run_commands(i + 1); });
               });
  }

  void mark(const std::string& marker, const std::string& content, std::function<void()> next) {
    auto self = shared_from_this();
    run_script(kMark, {marker, content}, "the marker " + marker,
               [self, next = std::move(next)](const CommandResult& result) {
                 if (!result.success) return self->fail(marker_error(result));
                 next();
               });
  }

  static Error marker_error(const CommandResult& result) {
    Error error(Status::unavailable, "a marker of set-up could not be written",
                "setup.marker_failed");
    error.details.set("stderr", redact(tail(result.err), nullptr));
    if (result.err.find("No space left") != std::string::npos) {
      error.code = Status::no_space;
      error.reason = "setup.no_space";
    }
    return error;
  }

  // ---- The workspace

  void check_workspace() {
    if (!plan().list_form && plan().workspace_commands.empty()) return mark_all();
    report_.ran = true;
    auto self = shared_from_this();
    if (commands_ran_) return run_workspace(0);
    run_script(kCheckMark, {kWorkspaceMarker, commands_digest(plan().workspace_commands)},
               "the look at the markers", [self](const CommandResult& result) {
                 if (result.success) return self->mark_all();
                 self->run_workspace(0);
               });
  }

  void run_workspace(std::size_t c) {
    const auto& commands = plan().workspace_commands;
    auto self = shared_from_this();
    if (c == commands.size())
      return mark(kWorkspaceMarker, commands_digest(commands), [self] { self->mark_all(); });
    step("workspace", "", commands[c]);
    exec({"sh", "-c", commands[c]}, {}, std::nullopt, true, "the set-up of the workspace",
         [self, c](const CommandResult& result) {
           if (result.success) return self->run_workspace(c + 1);
           self->fail(self->command_error("", c, self->plan().workspace_commands[c], result));
         });
  }

  void mark_all() {
    auto self = shared_from_this();
    run_script(kMark, {".mastra-bootstrapped", plan_digest(plan())}, "the last marker",
               [self](const CommandResult& result) {
                 // It only spares later work: its absence is no failure.
                 if (!result.success)
                   self->report_.warnings.push_back(
                       "the marker .mastra-bootstrapped could not be "
                       "written");
                 self->finish();
               });
  }

  // ---- Ends

  // A function that answers and throws all the same has answered.
  void finish() {
    if (done_) std::move(done_)(std::move(report_));
  }
  void fail(Error error) {
    if (done_) std::move(done_)(std::move(error));
  }

  static constexpr const char* kWorkspaceMarker = ".mastra-sandbox/workspace-setup";

  const std::shared_ptr<Sandbox> sandbox_;
  SetupRequest request_;
  Handler<SetupReport> done_;
  SetupReport report_;
  std::vector<Repository> repositories_;
  std::set<std::string> directories_;
  bool force_ = false;
  bool commands_ran_ = false;
};

}  // namespace

void async_setup(std::shared_ptr<Sandbox> sandbox, SetupRequest request,
                 Handler<SetupReport> done) {
  std::make_shared<SetupRun>(std::move(sandbox), std::move(request), std::move(done))->run();
}

StartHook make_setup_hook(SetupPlan plan, RepositoryAccessByIndex access, SetupOptions options) {
  return [plan = std::move(plan), access = std::move(access), options = std::move(options)](
             std::shared_ptr<Sandbox> sandbox, StartedInfo info, Handler<void> done) {
    SetupRequest request;
    request.plan = plan;
    request.access = access;
    request.started = std::move(info);
    request.options = options;
    async_setup(std::move(sandbox), std::move(request),
                [done = std::move(done)](Result<SetupReport> report) mutable {
                  if (report) return std::move(done)(Result<void>());
                  std::move(done)(std::move(report).error());
                });
  };
}

RepositoryAccessByIndex access_of(std::shared_ptr<const SessionContext> context) {
  return [context = std::move(context)](std::size_t index, Handler<RepositoryAccess> done) {
    if (context->repos && index < context->repos->size() && (*context->repos)[index].access)
      return (*context->repos)[index].access(std::move(done));
    if (!context->repos && index == 0 && context->repository_access)
      return context->repository_access(std::move(done));
    std::move(done)(
        Error(Status::invalid, "the context has no access to this repository", "setup.no_access"));
  };
}

}  // namespace sandforge
