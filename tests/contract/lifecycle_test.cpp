// D02 to D04, D06, D13: starting, stopping, destroying, and what happens behind our back.
#include <signal.h>

#include <fstream>

#include "contract/local_fixture.hpp"
#include "sandforge/setup.hpp"

using namespace sandforge;
using namespace sandforge::contract;

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

}  // namespace

TEST_CASE_METHOD(LocalFixture, "D02 start twice answers connected", "[cases.D02]") {
  const auto sandbox = make();
  CHECK(sandbox->status() == SandboxStatus::pending);
  CHECK(sandbox->start().outcome == StartOutcome::created);
  CHECK(sandbox->status() == SandboxStatus::running);
  CHECK(sandbox->start().outcome == StartOutcome::connected);
  CHECK(sandbox->status() == SandboxStatus::running);
}

TEST_CASE_METHOD(LocalFixture, "D02 start after stop runs again, with its files", "[cases.D02]") {
  const auto sandbox = started();
  sh(*sandbox, "echo kept > file");
  sandbox->stop();
  CHECK(sandbox->status() == SandboxStatus::stopped);
  CHECK(nothing_runs());
  CHECK(sandbox->start().outcome == StartOutcome::connected);
  CHECK(sh(*sandbox, "cat file").out == "kept\n");
}

TEST_CASE_METHOD(LocalFixture, "D02 start after destroy provisions anew, in the folder that stays",
                 "[cases.D02]") {
  const auto sandbox = started();
  sh(*sandbox, "echo kept > file");
  const auto before = sandbox->started()->generation;
  sandbox->destroy();
  CHECK(sandbox->status() == SandboxStatus::destroyed);
  CHECK(nothing_runs());
  const auto again = sandbox->start();
  // The folder is what outlives a local machine: with it, "created" would invite set-up by force.
  CHECK(again.outcome == StartOutcome::connected);
  CHECK(again.generation > before);
  CHECK(sh(*sandbox, "cat file").out == "kept\n");

  sandbox->destroy();
  fs::remove_all(folder());
  CHECK(sandbox->start().outcome == StartOutcome::created);
}

TEST_CASE_METHOD(LocalFixture, "D02 stop and destroy twice are no-ops", "[cases.D02]") {
  const auto sandbox = started();
  sandbox->stop();
  CHECK_NOTHROW(sandbox->stop());
  CHECK(sandbox->status() == SandboxStatus::stopped);
  sandbox->destroy();
  CHECK_NOTHROW(sandbox->destroy());
  CHECK_NOTHROW(sandbox->stop());
  CHECK(sandbox->status() == SandboxStatus::destroyed);
}

TEST_CASE_METHOD(LocalFixture, "D02 stop and destroy while starting take effect in order",
                 "[cases.D02]") {
  for (const bool destroy : {false, true}) {
    CAPTURE(destroy);
    const auto sandbox = make(destroy ? "d" : "s");
    auto started = std::make_shared<std::promise<Result<StartedInfo>>>();
    auto ended = std::make_shared<std::promise<Result<void>>>();
    sandbox->async_start([started](Result<StartedInfo> r) { started->set_value(std::move(r)); });
    Handler<void> done = [ended](Result<void> r) { ended->set_value(std::move(r)); };
    if (destroy) {
      sandbox->async_destroy(std::move(done));
    } else {
      sandbox->async_stop(std::move(done));
    }
    CHECK(started->get_future().get().ok());
    CHECK(ended->get_future().get().ok());
    CHECK(sandbox->status() == (destroy ? SandboxStatus::destroyed : SandboxStatus::stopped));
    CHECK(nothing_runs());
  }
}

TEST_CASE_METHOD(LocalFixture, "D02 stop ends the commands that run, with what they said",
                 "[cases.D02]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(shell("echo up; sleep 60"));
  REQUIRE(eventually([&] { return process->out() == "up\n"; }));
  sandbox->stop();
  const auto result = process->wait();
  CHECK_FALSE(result.success);
  CHECK(result.outcome != Outcome::exited);
  CHECK(result.out == "up\n");
  CHECK(nothing_runs());
}

TEST_CASE_METHOD(LocalFixture, "D02 destroy ends the commands that run as destroyed",
                 "[cases.D02]") {
  const auto sandbox = started();
  const auto process = sandbox->spawn(shell("echo up; sleep 60"));
  REQUIRE(eventually([&] { return process->out() == "up\n"; }));
  sandbox->destroy();
  const auto result = process->wait();
  CHECK(result.outcome == Outcome::destroyed);
  CHECK(result.out == "up\n");
}

TEST_CASE_METHOD(LocalFixture, "D03 a failed start hook fails the start, and runs again",
                 "[cases.D03]") {
  std::vector<StartedInfo> seen;
  bool fail = true;
  SandboxConfig config;
  config.id = "s";
  config.hooks.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo info, Handler<void> done) {
    seen.push_back(info);
    if (fail) return std::move(done)(Error(Status::invalid, "set-up is broken"));
    std::move(done)(Result<void>());
  };
  const auto sandbox = make(config);
  const Error error = error_of([&] { sandbox->start(); });
  CHECK(error.message == "Sandbox 's' onStart hook failed: set-up is broken");
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

TEST_CASE_METHOD(LocalFixture, "D03 a start hook that throws is no different", "[cases.D03]") {
  SandboxConfig config;
  config.id = "s";
  config.hooks.on_start = [](std::shared_ptr<Sandbox>, StartedInfo, Handler<void>) {
    throw std::runtime_error("thrown");
  };
  const auto sandbox = make(config);
  CHECK(error_of([&] { sandbox->start(); }).message.find("thrown") != std::string::npos);
  CHECK(sandbox->status() == SandboxStatus::error);
}

TEST_CASE_METHOD(LocalFixture, "D04 a machine that was stopped from outside is started again",
                 "[cases.D04]") {
  int starts = 0;
  SandboxConfig config;
  config.id = "s";
  config.hooks.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    ++starts;
    std::move(done)(Result<void>());
  };
  const auto sandbox = make(config);
  sandbox->start();
  sh(*sandbox, "echo kept > file");
  REQUIRE(::kill(guest_of(folder().string()), SIGTERM) == 0);
  REQUIRE(eventually([&] { return guest_of(folder().string()) == 0; }));
  CHECK(sh(*sandbox, "cat file").out == "kept\n");
  CHECK(sandbox->status() == SandboxStatus::running);
  CHECK(starts == 2);
}

TEST_CASE_METHOD(LocalFixture,
                 "D04 a machine that was destroyed from outside is never replaced silently",
                 "[cases.D04]") {
  const auto sandbox = started();
  SECTION("its folder alone") {
    fs::remove_all(folder());
  }
  SECTION("its guest and its folder") {
    REQUIRE(::kill(guest_of(folder().string()), SIGKILL) == 0);
    REQUIRE(eventually([&] { return guest_of(folder().string()) == 0; }));
    fs::remove_all(folder());
  }
  const fs::path proof = home() / "proof";
  CHECK_THROWS_AS(sh(*sandbox, "touch " + proof.string()), SandboxDestroyedError);
  CHECK_FALSE(fs::exists(proof));
  // The next one provisions anew.
  CHECK(sh(*sandbox, "echo again").out == "again\n");
  CHECK(sandbox->started()->outcome == StartOutcome::created);
  CHECK(sandbox->start().outcome == StartOutcome::connected);
}

TEST_CASE_METHOD(LocalFixture, "D04 after it was destroyed from outside, a start answers created",
                 "[cases.D04]") {
  const auto sandbox = started();
  fs::remove_all(folder());
  CHECK_THROWS_AS(sandbox->exec({"true"}), SandboxDestroyedError);
  CHECK(sandbox->start().outcome == StartOutcome::created);
  CHECK(sandbox->exec({"pwd"}).out == folder().string() + "\n");
}

TEST_CASE_METHOD(LocalFixture, "D06 destroy works from the session id alone", "[cases.D06]") {
  const auto first = started();
  sh(*first, "echo kept > file");
  const auto process = first->spawn(argv({"sleep", "60"}));
  const auto leader = static_cast<pid_t>(process->pid());

  const auto asked = std::make_shared<Asked>();
  auto context = watched_context(asked);
  context->session_id = SessionId("s");
  SandboxConfig config;
  config.context = context;
  const auto second = make(config);
  second->destroy();
  CHECK(second->status() == SandboxStatus::destroyed);
  CHECK_FALSE(alive(leader));
  CHECK(nothing_runs());
  CHECK_FALSE(fs::exists(root() / ".sandforge"));
  CHECK(read_text(folder() / "file") == "kept\n");
  CHECK(asked->access == 0);
  CHECK(asked->head == 0);
}

TEST_CASE_METHOD(LocalFixture, "D06 destroy of what never started, or is gone, succeeds",
                 "[cases.D06]") {
  const auto asked = std::make_shared<Asked>();
  const auto destroyed = [&](bool session, bool provider_id) {
    auto context = watched_context(asked);
    if (session) context->session_id = SessionId("never");
    if (provider_id) context->sandbox_id = ProviderSandboxId("provider-id");
    SandboxConfig config;
    config.context = context;
    const auto sandbox = make(config);
    CHECK_NOTHROW(sandbox->destroy());
    CHECK(sandbox->status() == SandboxStatus::destroyed);
  };
  destroyed(true, false);
  destroyed(false, true);
  destroyed(true, true);
  CHECK(nothing_runs());
  CHECK_FALSE(fs::exists(root()));

  started("gone")->destroy();
  fs::remove_all(folder("gone"));
  CHECK_NOTHROW(make("gone")->destroy());
  CHECK_FALSE(fs::exists(folder("gone")));
  CHECK(asked->access == 0);
  CHECK(asked->head == 0);
}

TEST_CASE_METHOD(LocalFixture, "D06 stopping what never started starts nothing", "[cases.D06]") {
  const auto sandbox = make();
  CHECK_NOTHROW(sandbox->stop());
  CHECK(sandbox->list_processes().empty());
  CHECK(nothing_runs());
  CHECK_FALSE(fs::exists(folder()));
}

TEST_CASE_METHOD(LocalFixture,
                 "D13 a set-up that exits 17 leaves a machine that is known as unfinished",
                 "[cases.D13]") {
  SetupPlan plan;
  plan.workspace_commands = {"echo trying >> tries; echo why >&2; exit 17"};
  std::vector<bool> unfinished;
  SandboxConfig config;
  config.id = "s";
  const auto hook = make_setup_hook(plan, nullptr);
  config.hooks.on_start = [&](std::shared_ptr<Sandbox> s, StartedInfo info, Handler<void> done) {
    unfinished.push_back(info.setup_unfinished);
    hook(std::move(s), std::move(info), std::move(done));
  };
  const auto sandbox = make(config);
  const Error error = error_of([&] { sandbox->start(); });
  CHECK(sandbox->status() == SandboxStatus::error);
  const auto* cause = error.details.find("cause");
  REQUIRE(cause != nullptr);
  const std::string text = json::write(*cause);
  CAPTURE(text);
  CHECK(text.find("setup.command_failed") != std::string::npos);
  CHECK(text.find("17") != std::string::npos);
  CHECK(text.find("why") != std::string::npos);
  // It tries again, and knows that it has to.
  CHECK_THROWS_AS(sandbox->start(), Exception);
  CHECK(unfinished == std::vector<bool>{false, true});
  CHECK(read_text(folder() / "tries") == "trying\ntrying\n");
  CHECK_FALSE(fs::exists(folder() / ".mastra-bootstrapped"));
}
