// D02 to D06, D12, D13: starting, stopping, destroying, and what happens behind our back.
#include <memory>

#include "procedure.hpp"
#include "sandforge/setup.hpp"

namespace sandforge::conformance {
namespace {

struct Asked {
  int access = 0;
  int head = 0;
};

// A context whose every question back to the host is counted.
std::shared_ptr<SessionContext> watched_context(const std::shared_ptr<Asked>& asked) {
  auto context = std::make_shared<SessionContext>();
  context->repository_access = [asked](Handler<RepositoryAccess> done) {
    ++asked->access;
    std::move(done)(Error(Status::forbidden, "no access"));
  };
  context->resolve_head = [asked](std::string, std::string,
                                  Handler<std::optional<std::string>> done) {
    ++asked->head;
    std::move(done)(std::optional<std::string>());
  };
  return context;
}

// Another object for the same session, as a second host has it.
std::shared_ptr<Sandbox> from_outside(Host& host) {
  return Sandbox::create(host.runtime(), host.open(), host.config()).value();
}

// Ends the machine of a started sandbox for good, without the object knowing. Where destroy keeps
// the session's directory, that directory is what makes the machine: it goes as well.
void destroy_outside(Host& host, Sandbox& sandbox) {
  if (host.has("destroy.keeps_directory"))
    REQUIRE(sh(sandbox, "d=$PWD; cd /; rm -rf \"$d\"").success);
  from_outside(host)->destroy();
}

// What a start answers that makes the machine once more.
StartOutcome after_destroy(Host& host) {
  return host.has("destroy.keeps_directory") ? StartOutcome::connected : StartOutcome::created;
}

void is_described(Host& host) {
  const auto sandbox = host.make();
  CHECK(sandbox->id() == host.id());
  CHECK_FALSE(sandbox->name().empty());
  CHECK(sandbox->provider() == host.provider_name());
  CHECK(to_string(sandbox->status()) == "pending");
}

void ids_differ(Host& host) {
  const auto one = host.make(SandboxConfig{});
  const auto two = host.make(SandboxConfig{});
  CHECK_FALSE(one->id().empty());
  CHECK(one->id() != two->id());
}

void touches_nothing(Host& host) {
  host.provider();
  const auto sockets = open_sockets();
  SandboxConfig config;
  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId(host.id("only-ids"));
  context->sandbox_id = ProviderSandboxId("provider-id");
  config.context = context;
  // Dropped, not destroyed: these never were.
  const auto sandbox = Sandbox::create(host.runtime(), host.provider(), config).value();
  const auto nameless = Sandbox::create(host.runtime(), host.provider(), SandboxConfig{}).value();
  CHECK(sandbox->status() == SandboxStatus::pending);
  CHECK(sandbox->id() == host.id("only-ids"));
  CHECK_FALSE(nameless->id().empty());
  CHECK(open_sockets() == sockets);
  CHECK(nothing_runs(host));
}

void info_agrees(Host& host) {
  const auto sandbox = host.started();
  const auto info = sandbox->info();
  CHECK(info.id == sandbox->id());
  CHECK(info.name == sandbox->name());
  CHECK(info.provider == sandbox->provider());
  CHECK(info.status == SandboxStatus::running);
  CHECK(info.status == sandbox->status());
}

// A hook that fails is a start that cannot work on any provider.
void refused_start(Host& host) {
  auto config = host.config("bad");
  config.hooks.on_start = [](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    std::move(done)(Error(Status::invalid, "not this one"));
  };
  const auto broken = host.make(config);
  CHECK_THROWS_AS(broken->start(), Exception);
  CHECK(broken->status() == SandboxStatus::error);
  CHECK(host.make("good")->execute_command("echo good").out == "good\n");
}

void id_stays(Host& host) {
  const auto sandbox = host.started();
  const auto id = sandbox->info().id;
  CHECK_FALSE(id.empty());
  sandbox->stop();
  sandbox->start();
  CHECK(sandbox->info().id == id);
}

void directory_stays(Host& host) {
  const auto sandbox = host.started();
  const auto before = sandbox->execute_command("pwd").out;
  sandbox->stop();
  sandbox->start();
  CHECK(sandbox->execute_command("pwd").out == before);
  CHECK(before.size() > 1);
}

void stopped_outside_then_command(Host& host) {
  const auto sandbox = host.started();
  from_outside(host)->stop();
  CHECK(sandbox->execute_command("echo back").out == "back\n");
  CHECK(sandbox->status() == SandboxStatus::running);
}

void stopped_outside_then_spawn(Host& host) {
  const auto sandbox = host.started();
  from_outside(host)->stop();
  CHECK(sandbox->spawn(argv({"echo", "back"}))->wait().out == "back\n");
}

// ---- D02

void restart_keeps_files(Host& host) {
  const auto sandbox = host.started();
  sh(*sandbox, "echo kept > file");
  sandbox->stop();
  CHECK(sandbox->status() == SandboxStatus::stopped);
  CHECK(sandbox->start().outcome != StartOutcome::unknown);
  CHECK(sh(*sandbox, "cat file").out == "kept\n");
}

void start_after_destroy(Host& host) {
  const auto sandbox = host.make();
  CHECK(sandbox->start().outcome == StartOutcome::created);
  sh(*sandbox, "echo kept > file");
  const auto before = sandbox->started()->generation;
  sandbox->destroy();
  CHECK(sandbox->status() == SandboxStatus::destroyed);
  const auto again = sandbox->start();
  CHECK(again.outcome == after_destroy(host));
  CHECK(again.generation > before);
  if (host.has("destroy.keeps_directory")) CHECK(sh(*sandbox, "cat file").out == "kept\n");
  CHECK(sandbox->exec({"true"}).success);
}

void stop_ends_commands(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(shell("echo up; sleep 60"));
  REQUIRE(eventually([&] { return process->out() == "up\n"; }));
  sandbox->stop();
  const auto result = process->wait();
  CHECK_FALSE(result.success);
  CHECK(result.outcome != Outcome::exited);
  CHECK(result.out == "up\n");
}

void destroy_ends_commands(Host& host) {
  const auto sandbox = host.started();
  const auto process = sandbox->spawn(shell("echo up; sleep 60"));
  REQUIRE(eventually([&] { return process->out() == "up\n"; }));
  sandbox->destroy();
  const auto result = process->wait();
  CHECK(result.outcome == Outcome::destroyed);
  CHECK(result.out == "up\n");
}

// The hooks of an end run once more where a check has thrown and the host cleans up: what they
// write to is theirs.
void hooks_in_order(Host& host) {
  const auto order = std::make_shared<std::vector<std::string>>();
  auto config = host.config();
  config.hooks.on_start = [order](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    order->emplace_back("start");
    std::move(done)(Result<void>());
  };
  config.hooks.on_stop = [order](std::shared_ptr<Sandbox>, Handler<void> done) {
    order->emplace_back("stop");
    std::move(done)(Result<void>());
  };
  config.hooks.on_destroy = [order](std::shared_ptr<Sandbox>, Handler<void> done) {
    order->emplace_back("destroy");
    std::move(done)(Result<void>());
  };
  const auto sandbox = host.make(config);
  sandbox->start();
  sandbox->stop();
  sandbox->start();
  sandbox->destroy();
  CHECK((*order == std::vector<std::string>{"start", "stop", "start", "destroy"}));
}

void stop_hook_fails(Host& host) {
  const auto fail = std::make_shared<bool>(true);
  auto config = host.config();
  config.hooks.on_stop = [fail](std::shared_ptr<Sandbox>, Handler<void> done) {
    if (*fail) return std::move(done)(Error(Status::internal, "not yet"));
    std::move(done)(Result<void>());
  };
  const auto sandbox = host.make(config);
  sandbox->start();
  CHECK(error_of([&] { sandbox->stop(); }).message.find("not yet") != std::string::npos);
  CHECK(sandbox->status() == SandboxStatus::error);
  *fail = false;
  CHECK_NOTHROW(sandbox->stop());
  CHECK(sandbox->status() == SandboxStatus::stopped);
}

// ---- D03, D04

void hook_fails(Host& host) {
  std::vector<StartedInfo> seen;
  bool fail = true;
  auto config = host.config();
  config.hooks.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo info, Handler<void> done) {
    seen.push_back(info);
    if (fail) return std::move(done)(Error(Status::invalid, "set-up is broken"));
    std::move(done)(Result<void>());
  };
  const auto sandbox = host.make(config);
  const Error error = error_of([&] { sandbox->start(); });
  CHECK(error.message == "Sandbox '" + sandbox->id() + "' onStart hook failed: set-up is broken");
  CHECK(sandbox->status() == SandboxStatus::error);
  CHECK(sandbox->info().error == error.message);

  fail = false;
  CHECK_NOTHROW(sandbox->start());
  CHECK(sandbox->status() == SandboxStatus::running);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].outcome == StartOutcome::created);
  CHECK_FALSE(seen[0].setup_unfinished);
  CHECK(seen[1].setup_unfinished);

  sandbox->stop();
  sandbox->start();
  REQUIRE(seen.size() == 3);
  CHECK_FALSE(seen[2].setup_unfinished);
}

void hook_throws(Host& host) {
  auto config = host.config();
  config.hooks.on_start = [](std::shared_ptr<Sandbox>, StartedInfo, Handler<void>) {
    throw std::runtime_error("thrown");
  };
  const auto sandbox = host.make(config);
  CHECK(error_of([&] { sandbox->start(); }).message.find("thrown") != std::string::npos);
  CHECK(sandbox->status() == SandboxStatus::error);
}

void stopped_outside(Host& host) {
  int starts = 0;
  auto config = host.config();
  config.hooks.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    ++starts;
    std::move(done)(Result<void>());
  };
  const auto sandbox = host.make(config);
  sandbox->start();
  sh(*sandbox, "echo kept > file");
  from_outside(host)->stop();
  CHECK(sh(*sandbox, "cat file").out == "kept\n");
  CHECK(sandbox->status() == SandboxStatus::running);
  CHECK(starts == 2);
}

void destroyed_outside(Host& host) {
  const auto sandbox = host.started();
  destroy_outside(host, *sandbox);
  const auto proof = "/tmp/" + host.word("proof");
  CHECK_THROWS_AS(sh(*sandbox, "touch " + proof), SandboxDestroyedError);
  // The next one provisions anew, and nothing has run.
  CHECK(sh(*sandbox, "echo again").out == "again\n");
  CHECK_FALSE(exists(*sandbox, proof));
  CHECK(sandbox->started()->outcome == StartOutcome::created);
  CHECK(sandbox->start().outcome == StartOutcome::connected);
}

void destroyed_outside_then_start(Host& host) {
  const auto sandbox = host.started();
  destroy_outside(host, *sandbox);
  CHECK_THROWS_AS(sandbox->exec({"true"}), SandboxDestroyedError);
  CHECK(sandbox->start().outcome == StartOutcome::created);
  CHECK(sandbox->exec({"true"}).success);
}

// ---- D06

// From an object that knows no more than the session's id, and the provider's where it is told.
void destroys_running(Host& host, const std::string& name, bool provider_id) {
  const auto first = host.started(name);
  if (provider_id && !first->sandbox_id()) return;
  CAPTURE(name);
  const auto word = host.word(name);
  const auto process = first->spawn(argv({"sh", "-c", "sleep 60; :", word}));
  REQUIRE(process->running());
  const auto asked = std::make_shared<Asked>();
  auto context = watched_context(asked);
  context->session_id = SessionId(host.id(name));
  if (provider_id) context->sandbox_id = first->sandbox_id();
  SandboxConfig config;
  config.context = context;
  const auto second = Sandbox::create(host.runtime(), host.open(), config).value();
  second->destroy();
  CHECK(second->status() == SandboxStatus::destroyed);
  CHECK(eventually([&] { return processes_with(word).empty(); }));
  CHECK(process->wait().success == false);
  CHECK(asked->access == 0);
  CHECK(asked->head == 0);
}

void destroy_by_session_id(Host& host) {
  destroys_running(host, "session", false);
  destroys_running(host, "both", true);
}

void destroy_what_never_was(Host& host) {
  const auto asked = std::make_shared<Asked>();
  const auto destroyed = [&](bool session, bool provider_id) {
    auto context = watched_context(asked);
    if (session) context->session_id = SessionId(host.id("never"));
    if (provider_id) context->sandbox_id = ProviderSandboxId(host.id("provider-id"));
    SandboxConfig config;
    config.context = context;
    const auto sandbox = host.make(config);
    CHECK_NOTHROW(sandbox->destroy());
    CHECK(sandbox->status() == SandboxStatus::destroyed);
  };
  destroyed(true, false);
  destroyed(false, true);
  destroyed(true, true);
  CHECK(nothing_runs(host));

  host.started("gone")->destroy();
  CHECK_NOTHROW(host.make("gone")->destroy());
  CHECK(asked->access == 0);
  CHECK(asked->head == 0);
}

void stop_what_never_was(Host& host) {
  const auto sandbox = host.make();
  CHECK_NOTHROW(sandbox->stop());
  CHECK(sandbox->list_processes().empty());
  CHECK(nothing_runs(host));
}

void setup_fails(Host& host) {
  SetupPlan plan;
  plan.workspace_commands = {"echo trying >> tries; echo why >&2; exit 17"};
  std::vector<bool> unfinished;
  auto config = host.config();
  const auto hook = make_setup_hook(plan, nullptr);
  config.hooks.on_start = [&](std::shared_ptr<Sandbox> s, StartedInfo info, Handler<void> done) {
    unfinished.push_back(info.setup_unfinished);
    hook(std::move(s), std::move(info), std::move(done));
  };
  const auto sandbox = host.make(config);
  const Error error = error_of([&] { sandbox->start(); });
  CHECK(sandbox->status() == SandboxStatus::error);
  const auto* cause = error.details.find("cause");
  REQUIRE((cause != nullptr));
  const std::string text = json::write(*cause);
  CAPTURE(text);
  CHECK(text.find("setup.command_failed") != std::string::npos);
  CHECK(text.find("17") != std::string::npos);
  CHECK(text.find("why") != std::string::npos);

  // It tries again, and knows that it has to.
  CHECK_THROWS_AS(sandbox->start(), Exception);
  CHECK((unfinished == std::vector<bool>{false, true}));
}

void idle(Host& host) {
  auto config = host.config();
  config.idle_timeout = 2s;
  const auto sandbox = host.make(config);
  sandbox->start();
  CHECK(sh(*sandbox, "sleep 6; echo whole").out == "whole\n");
  CHECK(eventually(
      [&] {
        const auto state = sandbox->info().machine.state;
        return state == MachineState::stopped || state == MachineState::absent;
      },
      30s));
}

}  // namespace

void add_lifecycle(Procedures& to) {
  to["lifecycle.is_described"] = is_described;
  to["lifecycle.ids_differ"] = ids_differ;
  to["lifecycle.touches_nothing"] = touches_nothing;
  to["lifecycle.info_agrees"] = info_agrees;
  to["lifecycle.refused_start"] = refused_start;
  to["lifecycle.id_stays"] = id_stays;
  to["lifecycle.directory_stays"] = directory_stays;
  to["lifecycle.stopped_outside_then_command"] = stopped_outside_then_command;
  to["lifecycle.stopped_outside_then_spawn"] = stopped_outside_then_spawn;
  to["lifecycle.restart_keeps_files"] = restart_keeps_files;
  to["lifecycle.start_after_destroy"] = start_after_destroy;
  to["lifecycle.stop_ends_commands"] = stop_ends_commands;
  to["lifecycle.destroy_ends_commands"] = destroy_ends_commands;
  to["lifecycle.hooks_in_order"] = hooks_in_order;
  to["lifecycle.stop_hook_fails"] = stop_hook_fails;
  to["lifecycle.hook_fails"] = hook_fails;
  to["lifecycle.hook_throws"] = hook_throws;
  to["lifecycle.stopped_outside"] = stopped_outside;
  to["lifecycle.destroyed_outside"] = destroyed_outside;
  to["lifecycle.destroyed_outside_then_start"] = destroyed_outside_then_start;
  to["lifecycle.destroy_by_session_id"] = destroy_by_session_id;
  to["lifecycle.destroy_what_never_was"] = destroy_what_never_was;
  to["lifecycle.stop_what_never_was"] = stop_what_never_was;
  to["lifecycle.setup_fails"] = setup_fails;
  to["lifecycle.idle"] = idle;
}

}  // namespace sandforge::conformance
