// Set-up and hooks of sessions, and the functions of the host that they call.
#include <catch2/catch.hpp>

#include "unit/session/site.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

// A plan without repositories: one command, which the pretend shell of the provider runs.
SessionSpec with_setup(const std::string& id, const std::string& command) {
  auto out = spec(id);
  out.plan.list_form = true;
  out.plan.workspace_commands = {command};
  return out;
}

// Runs `sh -c TEXT` of set-up: scripts succeed with nothing done, commands as their text says.
void setup_program(const std::shared_ptr<fake::Process>& process) {
  process->start();
  const auto& argv = process->command.argv;
  if (argv.size() == 3 && argv[2].rfind("exit ", 0) == 0)
    return process->exit(std::stoi(argv[2].substr(5)));
  // No marker is ever there.
  const bool check = argv.size() > 3 && argv[2].find("exit 1") != std::string::npos;
  process->exit(check ? 1 : 0);
}

int ran(const Site& site, const std::string& command) {
  int count = 0;
  for (const auto& process : site.world->processes())
    if (process->command.argv.size() == 3 && process->command.argv[2] == command) ++count;
  return count;
}

}  // namespace

TEST_CASE("Set-up runs once per machine, whichever host starts it") {
  Site site;
  site.world->set_program(setup_program);
  const auto first = site.host();
  const auto session = first.manager->open(with_setup("s1", "do it"), OpenMode::create);
  first.manager->start(SessionId("s1"));
  CHECK(ran(site, "do it") == 1);
  REQUIRE(session->setup_report());
  CHECK(session->setup_report()->ran);
  CHECK(site.record("s1").setup == SetupState::done);

  const auto second = site.host();
  second.manager->start(SessionId("s1"));
  CHECK(ran(site, "do it") == 1);
  second.manager->stop(SessionId("s1"));
  second.manager->start(SessionId("s1"));
  CHECK(ran(site, "do it") == 1);

  second.manager->recreate(SessionId("s1"));
  CHECK(ran(site, "do it") == 2);
  CHECK(site.record("s1").generation == 2);
  CHECK(site.record("s1").setup == SetupState::done);
}

TEST_CASE("A set-up that failed runs again, also from another host, and keeps its error") {
  Site site;
  site.world->set_program(setup_program);
  const auto first = site.host();
  first.manager->open(with_setup("s1", "exit 17"), OpenMode::create);
  const auto error = error_of([&] { first.manager->start(SessionId("s1")); });
  REQUIRE(error.details.find("cause") != nullptr);
  CHECK(error.details.find("cause")->at_pointer("/details/exitCode")->as_integer() == 17);
  auto record = site.record("s1");
  CHECK(record.setup == SetupState::failed);
  CHECK(record.status == SessionStatus::error);
  CHECK(record.sandbox_id == ProviderSandboxId("m1"));
  CHECK_FALSE(record.claim);

  const auto second = site.host();
  site.world->set_program([](const std::shared_ptr<fake::Process>& process) {
    process->start();
    process->exit(process->command.argv.size() > 3 &&
                  process->command.argv[2].find("exit 1") != std::string::npos);
  });
  CHECK(second.manager->start(SessionId("s1")).outcome == StartOutcome::connected);
  CHECK(ran(site, "exit 17") == 2);
  CHECK(site.record("s1").setup == SetupState::done);
  CHECK(site.record("s1").status == SessionStatus::running);
}

TEST_CASE("The host's own hook runs after set-up, and its failure fails the start") {
  Site site;
  site.world->set_program(setup_program);
  const auto host = site.host();
  auto wanted = with_setup("s1", "do it");
  int calls = 0;
  wanted.on_start = [&](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
    CHECK(ran(site, "do it") == 1);
    if (++calls == 1) return std::move(done)(Error(Status::invalid, "not today", "host.hook"));
    std::move(done)(Result<void>());
  };
  host.manager->open(wanted, OpenMode::create);
  CHECK(error_of([&] { host.manager->start(SessionId("s1")); }).message.find("not today") !=
        std::string::npos);
  CHECK_FALSE(site.record("s1").claim);
  host.manager->start(SessionId("s1"));
  CHECK(calls == 2);
}

TEST_CASE("A hook of the host that throws or forgets its handler fails the start, nothing else") {
  const bool set_up = GENERATE(false, true);
  Site site;
  site.world->set_program(setup_program);
  const auto host = site.host();
  auto wanted = set_up ? with_setup("s1", "do it") : spec("s1");
  int calls = 0;
  wanted.on_start = [&](const std::shared_ptr<Sandbox>&, const StartedInfo&, Handler<void> done) {
    if (++calls == 1) throw std::runtime_error("not today");
    if (calls == 2) return;
    std::move(done)(Result<void>());
  };
  host.manager->open(wanted, OpenMode::create);
  const auto start = [&] { host.manager->start(SessionId("s1")); };
  CHECK(error_of(start).message.find("not today") != std::string::npos);
  CHECK_FALSE(site.record("s1").claim);
  CHECK(error_of(start).message.find("without an answer") != std::string::npos);
  CHECK_FALSE(site.record("s1").claim);
  start();
  CHECK(calls == 3);
}

TEST_CASE("An access function that throws or forgets its handler fails the start, nothing else") {
  Site site;
  site.world->set_program(setup_program);
  const auto host = site.host();
  auto wanted = with_setup("s1", "do it");
  RepositoryPlan repository;
  repository.url = "https://example.com/a/b.git";
  wanted.plan.repositories.push_back(repository);
  int calls = 0;
  wanted.access = [&](std::size_t, Handler<RepositoryAccess> done) {
    if (++calls == 1) throw std::runtime_error("no token today");
    if (calls == 2) return;
    std::move(done)(Error(Status::unauthenticated, "no more tokens"));
  };
  host.manager->open(wanted, OpenMode::create);
  for (const auto* why : {"no token today", "without an answer", "no more tokens"}) {
    const auto error = error_of([&] { host.manager->start(SessionId("s1")); });
    CHECK(error.message.find(why) != std::string::npos);
    CHECK_FALSE(site.record("s1").claim);
  }
}
