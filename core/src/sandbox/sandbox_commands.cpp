// Commands and processes of the Sandbox.
#include "sandbox/features.hpp"
#include "sandbox/lane_handler.hpp"
#include "sandbox/sandbox_impl.hpp"
#include "sandbox/validate.hpp"
#include "sandforge/support/shell.hpp"

namespace sandforge::sandbox {
namespace {

constexpr std::uint64_t kExecRetained = std::uint64_t{64} << 20;
constexpr std::uint64_t kSpawnRetained = std::uint64_t{1} << 20;

bool any_has_nul(const std::vector<std::string>& words) {
  for (const auto& word : words)
    if (word.find('\0') != std::string::npos) return true;
  return false;
}

}  // namespace

// ---- Commands

void SandboxImpl::async_execute_command(std::string command, std::vector<std::string> args,
                                        ExecOptions options, Handler<CommandResult> done) {
  if (command.empty() || any_has_nul(args))
    return refuse(std::move(done),
                  Error(Status::invalid,
                        command.empty() ? "the command is empty" : "an argument holds a NUL byte",
                        "command.invalid"));
  Command what;
  what.shell = args.empty() ? std::move(command) : command_line(command, args);
  run(std::move(what), std::move(options), std::move(done));
}

void SandboxImpl::async_exec(std::vector<std::string> argv, ExecOptions options,
                             Handler<CommandResult> done) {
  Command what;
  what.argv = std::move(argv);
  run(std::move(what), std::move(options), std::move(done));
}

void SandboxImpl::run(Command command, ExecOptions options, Handler<CommandResult> done) {
  if (!options.timeout) options.timeout = config_.timeout;
  auto what = plan(std::move(command), options, kExecRetained);
  if (auto bad = check_command(what.command)) return refuse(std::move(done), *std::move(bad));
  auto process = std::make_shared<ProcessImpl>(lane_, deadlines_, std::move(what));
  post(lane_, [self = self(), process = std::move(process), done = std::move(done)]() mutable {
    self->touch();
    process->execute(self, std::move(done));
  });
}

void SandboxImpl::async_spawn(Command command, SpawnOptions options,
                              Handler<std::shared_ptr<Process>> done) {
  command.stdin_pipe = options.stdin_pipe.value_or(true);
  command.detach = command.detach || options.detach;
  if (options.tty) command.tty = options.tty;
  command.window = options.window;
  auto what = plan(std::move(command), options, kSpawnRetained);
  what.listed = true;
  what.stdin_if_offered = !options.stdin_pipe.has_value();
  what.manual_credit = options.manual_credit;
  if (auto bad = check_command(what.command)) return refuse(std::move(done), *std::move(bad));
  if (options.window == 0 && !options.manual_credit)
    return refuse(std::move(done),
                  Error(Status::invalid, "no output can come through a window of 0 bytes",
                        "command.invalid"));
  auto process = std::make_shared<ProcessImpl>(lane_, deadlines_, std::move(what));
  post(lane_, [self = self(), process = std::move(process), done = std::move(done)]() mutable {
    self->touch();
    process->spawn(self, std::move(done));
  });
}

// What the options name goes before what the command brought along.
ProcessImpl::Plan SandboxImpl::plan(Command command, ExecOptions& options,
                                    std::uint64_t retained) const {
  if (options.timeout) command.timeout = *options.timeout;
  command.grace = options.grace;
  for (auto& [name, value] : options.env)
    command.env.insert_or_assign(name, std::move(value));
  merge_env(command.env);
  if (options.cwd) command.cwd = std::move(options.cwd);
  if (!options.user.empty()) command.user = std::move(options.user);
  command.combined = command.combined || options.combined;
  if (!options.tag.empty()) command.tag = std::move(options.tag);
  if (!options.request_id.empty()) command.request_id = std::move(options.request_id);
  if (command.request_id.empty())
    command.request_id = request_prefix_ + std::to_string(++requests_);

  ProcessImpl::Plan plan;
  plan.command = std::move(command);
  plan.on_stdout = std::move(options.on_stdout);
  plan.on_stderr = std::move(options.on_stderr);
  plan.stop = std::move(options.stop);
  plan.retained = options.max_retained_bytes.value_or(retained);
  plan.output_limit = options.output_limit;
  plan.called = Clock::now();
  return plan;
}

void SandboxImpl::features(Handler<Features> done) {
  if (features_) return std::move(done)(features_);
  auto known =
      on_lane<Features>(lane_, "the provider",
                        [self = self(), done = std::move(done)](Result<Features> features) mutable {
                          if (features) self->features_ = *features;
                          std::move(done)(std::move(features));
                        });
  post(provider_->lane(), [provider = provider_, known = std::move(known)]() mutable {
    provider->features(std::move(known));
  });
}

void SandboxImpl::process_started(const std::shared_ptr<ProcessImpl>& process) {
  table_.started(process);
}

void SandboxImpl::process_ended(const std::shared_ptr<ProcessImpl>& process) {
  touch();
  table_.ended(process);
}

// ---- Processes

// Looking needs a start only where the provider may know processes of an earlier host; what was
// stopped or destroyed here runs none, and a teardown must not be undone by a look.
void SandboxImpl::for_processes(Handler<std::optional<Machine>> next) {
  if (auto ready = life_.machine()) return std::move(next)(std::move(ready));
  const SandboxStatus now = status();
  const bool resting = now == SandboxStatus::stopped || now == SandboxStatus::destroyed;
  if (resting || life_.tearing_down()) return std::move(next)(std::optional<Machine>());
  life_.with_backend([self = self(), next = std::move(next)](
                         Result<std::shared_ptr<SandboxBackend>> backend) mutable {
    if (!backend) return std::move(next)(std::move(backend).error());
    if ((*backend)->processes() == nullptr) return std::move(next)(std::optional<Machine>());
    self->life_.ensure_running([next = std::move(next)](Result<Machine> machine) mutable {
      if (!machine) return std::move(next)(std::move(machine).error());
      std::move(next)(std::optional<Machine>(*std::move(machine)));
    });
  });
}

void SandboxImpl::async_list_processes(Handler<std::vector<ProcessInfo>> done) {
  post(lane_, [self = self(), done = std::move(done)]() mutable {
    auto& sandbox = *self;
    sandbox.for_processes([self = std::move(self),
                           done = std::move(done)](Result<std::optional<Machine>> machine) mutable {
      if (!machine) return std::move(done)(std::move(machine).error());
      self->table_.list(self, *machine, std::move(done));
    });
  });
}

void SandboxImpl::async_get_process(ProcessId id, Handler<std::shared_ptr<Process>> done) {
  post(lane_, [self = self(), id = std::move(id), done = std::move(done)]() mutable {
    auto& sandbox = *self;
    sandbox.for_processes([self = std::move(self), id = std::move(id),
                           done = std::move(done)](Result<std::optional<Machine>> machine) mutable {
      if (!machine) return std::move(done)(std::move(machine).error());
      self->table_.get(self, *machine, std::move(id), std::move(done));
    });
  });
}

void SandboxImpl::async_attach_process(ProcessId id, AttachOptions options,
                                       Handler<std::shared_ptr<Process>> done) {
  if (options.window == 0 && !options.manual_credit)
    return refuse(std::move(done),
                  Error(Status::invalid, "no output can come through a window of 0 bytes",
                        "command.invalid"));
  ProcessImpl::Plan plan;
  plan.on_stdout = std::move(options.on_stdout);
  plan.on_stderr = std::move(options.on_stderr);
  plan.retained = options.max_retained_bytes.value_or(kSpawnRetained);
  plan.manual_credit = options.manual_credit;
  plan.command.window = options.window;
  plan.reader = true;
  post(lane_, [self = self(), id = std::move(id), from = options.from, plan = std::move(plan),
               done = std::move(done)]() mutable {
    auto& sandbox = *self;
    sandbox.for_processes([self = std::move(self), id = std::move(id), from, plan = std::move(plan),
                           done = std::move(done)](Result<std::optional<Machine>> machine) mutable {
      if (!machine) return std::move(done)(std::move(machine).error());
      self->table_.attach(self, *machine, std::move(id), from, std::move(plan), std::move(done));
    });
  });
}

void SandboxImpl::async_kill_process(ProcessId id, Handler<bool> done) {
  post(lane_, [self = self(), id = std::move(id), done = std::move(done)]() mutable {
    auto& sandbox = *self;
    sandbox.features([self = std::move(self), id = std::move(id),
                      done = std::move(done)](Result<Features> features) mutable {
      if (!features) return std::move(done)(std::move(features).error());
      if (auto bad =
              check_feature(feature::kKill, "killing processes", self->provider(), *features))
        return std::move(done)(*std::move(bad));
      auto& box = *self;
      box.for_processes([self = std::move(self), id = std::move(id),
                         done = std::move(done)](Result<std::optional<Machine>> machine) mutable {
        if (!machine) return std::move(done)(std::move(machine).error());
        self->table_.kill(self, *machine, std::move(id), std::move(done));
      });
    });
  });
}

void SandboxImpl::release_process(const ProcessId& id) {
  post(lane_, [self = self(), id] { self->table_.release(id); });
}

}  // namespace sandforge::sandbox
