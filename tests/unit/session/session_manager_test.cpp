#include "sandforge/session.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "unit/session/site.hpp"

using namespace sandforge;
using namespace sandforge::test;

TEST_CASE("Ids of sessions") {
  for (const std::string good : {"a", "..", "a/../b", "/etc", "CON", "é", "e\xcc\x81"})
    CHECK(check_session_id(SessionId(good)).ok());
  CHECK(check_session_id(SessionId(std::string(255, 'x'))).ok());
  for (const auto& bad :
       {std::string(), std::string(256, 'x'), std::string("a\0b", 3), std::string("a\nb"),
        std::string("\x1b[1m"), std::string("\xff"), std::string("\u009b1m")}) {
    const auto checked = check_session_id(SessionId(bad));
    REQUIRE_FALSE(checked.ok());
    CHECK(checked.error().reason == "session.bad_id");
  }
  CHECK(make_session_id() != make_session_id());
  CHECK(check_session_id(make_session_id()).ok());
}

TEST_CASE("Opening a session starts nothing, and gives settings with their defaults") {
  Site site;
  const auto host = site.host();
  auto wanted = spec("s1");
  wanted.settings.set("memoryMb", 512);
  const auto session = host.manager->open(wanted, OpenMode::create);
  CHECK(site.world->counts().starts == 0);
  CHECK(session->sandbox()->status() == SandboxStatus::pending);
  CHECK(session->record().status == SessionStatus::created);
  CHECK_FALSE(site.record("s1").settings.contains("cpuCount"));

  host.manager->start(SessionId("s1"));
  const auto created = site.world->creates().at(0);
  CHECK(created.settings.find("memoryMb")->as_integer() == 512);
  CHECK(created.settings.find("cpuCount")->as_integer() == 2);
  CHECK(created.context->caller_chose_id);
}

TEST_CASE("Each fresh machine of a session boots its template, whichever host starts it") {
  Site site;
  const std::string document = R"({"operations":[],"schemaVersion":1})";
  auto wanted = spec("s1");
  wanted.template_document = document;
  const auto first = site.host();
  first.manager->open(wanted, OpenMode::create)->sandbox()->start();
  CHECK(site.world->starts().back().template_document == document);
  // What is known may be gone.
  const auto second = site.host();
  second.manager->start(SessionId("s1"));
  CHECK(site.world->starts().back().template_document == document);
  second.manager->recreate(SessionId("s1"));
  CHECK(site.world->starts().back().template_document == document);
}

TEST_CASE("A session without an id gets one, and has no checkpoints") {
  Site site;
  const auto host = site.host();
  const auto session = host.manager->open(spec(""), OpenMode::create);
  CHECK(session->id().str().rfind("s-", 0) == 0);
  session->sandbox()->start();
  CHECK_FALSE(site.world->creates().at(0).context->caller_chose_id);
}

TEST_CASE("Modes of opening") {
  Site site;
  const auto host = site.host();
  CHECK(error_of([&] { host.manager->open(spec("s1"), OpenMode::attach); }).reason ==
        "session.not_found");
  const auto first = host.manager->open(spec("s1"), OpenMode::either);
  CHECK(host.manager->open(spec("s1"), OpenMode::either) == first);
  CHECK(error_of([&] { host.manager->open(spec("s1"), OpenMode::create); }).reason ==
        "session.exists");
  auto other = spec("s1");
  other.provider = "another";
  CHECK(error_of([&] { host.manager->open(other, OpenMode::either); }).reason ==
        "session.other_provider");
  const auto second_host = site.host();
  CHECK(error_of([&] { second_host.manager->open(spec("s1"), OpenMode::create); }).reason ==
        "session.exists");
  CHECK(error_of([&] { second_host.manager->open(other, OpenMode::attach); }).reason ==
        "session.other_provider");
}

TEST_CASE("A session whose provider cannot be opened is not kept") {
  Site site;
  const auto host = site.host();
  auto wanted = spec("s1");
  wanted.provider = "broken";
  CHECK(error_of([&] { host.manager->open(wanted, OpenMode::create); }).reason == "plugin.missing");
  CHECK_FALSE(site.known("s1"));
}

TEST_CASE("Fifty callers at once share one sandbox and one start") {
  Site site;
  const auto host = site.host();
  std::vector<std::future<Result<std::shared_ptr<Session>>>> opens;
  for (int i = 0; i < 50; ++i)
    opens.push_back(later<std::shared_ptr<Session>>([&](auto done) {
      host.manager->async_open(spec("s1"), OpenMode::either, std::move(done));
    }));
  std::shared_ptr<Session> session;
  for (auto& open : opens) {
    const auto one = get(open).value();
    if (!session) session = one;
    CHECK(one == session);
  }
  fake::StartScript script;
  script.hold = true;
  site.world->next_start(script);
  std::vector<std::future<Result<StartedInfo>>> starts;
  for (int i = 0; i < 50; ++i)
    starts.push_back(later<StartedInfo>(
        [&](auto done) { host.manager->async_start(SessionId("s1"), std::move(done)); }));
  REQUIRE(site.world->wait_held());
  // Answered behind the fifty calls: all of them wait for the start by then.
  CHECK(host.manager->attach(SessionId("s1")) == session);
  site.world->release();
  for (auto& start : starts)
    CHECK(get(start).value().outcome == StartOutcome::created);
  CHECK(site.world->counts().starts == 1);
  CHECK(site.world->machine_count() == 1);
  CHECK(site.opened == 1);
}

TEST_CASE("Peek never makes a session, and evict forgets only here") {
  Site site;
  const auto host = site.host();
  CHECK_FALSE(host.manager->peek(SessionId("s1")));
  const auto session = host.manager->open(spec("s1"), OpenMode::create);
  CHECK(host.manager->peek(SessionId("s1")) == session);
  host.manager->evict(SessionId("s1"));
  CHECK_FALSE(host.manager->peek(SessionId("s1")));
  CHECK(site.known("s1"));
  CHECK(host.manager->attach(SessionId("s1")) != session);
}

TEST_CASE("The machine's id is stored before start answers") {
  Site site;
  const auto host = site.host();
  host.manager->open(spec("s1"), OpenMode::create);
  const auto key = site.record("s1").start_key;
  fake::StartScript script;
  script.identity = ProviderSandboxId("early");
  script.error = Error(Status::unavailable, "the host died here");
  script.makes_machine = true;
  site.world->next_start(script);
  CHECK(error_of([&] { host.manager->start(SessionId("s1")); }).code == Status::unavailable);
  const auto record = site.record("s1");
  CHECK(record.sandbox_id == ProviderSandboxId("early"));
  CHECK(record.status == SessionStatus::error);
  CHECK_FALSE(record.claim);
  // The key is kept until its machine is known to have started, then it is used up.
  CHECK(site.world->starts().at(0).idempotency_key == key);
  CHECK(record.start_key == key);
  host.manager->start(SessionId("s1"));
  CHECK(site.world->starts().at(1).idempotency_key == key);
}

TEST_CASE("A second host finds the session and its machine") {
  Site site;
  const auto first = site.host();
  auto wanted = spec("s1");
  SessionVariable secret, known;
  secret.name = "TOKEN";
  secret.value = "s3cr3t-value";
  known.name = "KNOWN_TOO";
  known.value = "given";
  known.reference = "${KNOWN}";
  wanted.env = {secret, known};
  const auto session = first.manager->open(wanted, OpenMode::create);
  first.manager->start(SessionId("s1"));
  CHECK(printenv(session, "TOKEN") == "s3cr3t-value\n");
  CHECK(session->missing_env().empty());

  const auto second = site.host();
  const auto again = second.manager->attach(SessionId("s1"));
  CHECK(again->missing_env() == std::vector<std::string>{"TOKEN"});
  const auto info = second.manager->start(SessionId("s1"));
  CHECK(info.outcome == StartOutcome::connected);
  CHECK(site.world->machine_count() == 1);
  CHECK(site.world->creates().back().context->sandbox_id == site.record("s1").sandbox_id);
  CHECK(printenv(again, "KNOWN_TOO") == "from-host\n");
  CHECK(printenv(again, "TOKEN").empty());

  // A value that a later caller brings along.
  auto more = spec("s1");
  more.env = {secret};
  second.manager->open(more, OpenMode::attach);
  CHECK(again->missing_env().empty());
  CHECK(printenv(again, "TOKEN") == "s3cr3t-value\n");

  // A machine that tells what it has: nothing is missing once it was started.
  const auto third = site.host();
  fake::StartScript script;
  script.result.emplace();
  script.result->outcome = StartOutcome::connected;
  script.result->sandbox_id = site.record("s1").sandbox_id;
  script.result->env_names = {"HOME", "TOKEN"};
  site.world->next_start(script);
  const auto later = third.manager->attach(SessionId("s1"));
  CHECK(later->missing_env() == std::vector<std::string>{"TOKEN"});
  third.manager->start(SessionId("s1"));
  CHECK(later->missing_env().empty());

  std::string database;
  for (const auto* suffix : {"", "-wal"}) {
    std::ifstream file(site.dir / ("sessions.db" + std::string(suffix)), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    database += text.str();
  }
  CHECK(database.find("TOKEN") != std::string::npos);
  CHECK(database.find("s3cr3t") == std::string::npos);
}

TEST_CASE("A clone of a session's sandbox has a machine of its own, and no part in the session") {
  Site site;
  const auto host = site.host();
  const auto session = host.manager->open(spec("s1"), OpenMode::create);
  host.manager->start(SessionId("s1"));
  const auto before = json::write(to_json(site.record("s1")));

  const auto clone = session->sandbox()->clone({}).value();
  CHECK(clone->start().outcome == StartOutcome::created);
  CHECK(site.world->machine_count() == 2);
  CHECK(clone->sandbox_id() == ProviderSandboxId("m2"));
  CHECK_FALSE(site.world->creates().back().context->sandbox_id);
  CHECK(json::write(to_json(site.record("s1"))) == before);
  CHECK_FALSE(site.record("s1").claim);
  clone->destroy();
  CHECK(site.world->machine_count() == 1);
  CHECK(json::write(to_json(site.record("s1"))) == before);
  CHECK(session->sandbox()->execute_command("echo still here").out == "still here\n");
}

TEST_CASE("A start hook that replaces the session's own leaves no claim behind") {
  Site site;
  const auto host = site.host();
  const auto session = host.manager->open(spec("s1"), OpenMode::create);
  int calls = 0;
  session->sandbox()->set_on_start([&](const StartHook&) -> StartHook {
    return [&](std::shared_ptr<Sandbox>, StartedInfo, Handler<void> done) {
      if (++calls == 1) return std::move(done)(Error(Status::invalid, "not today"));
      std::move(done)(Result<void>());
    };
  });
  CHECK(error_of([&] { session->sandbox()->start(); }).reason == "hook.on_start");
  CHECK_FALSE(site.record("s1").claim);
  session->sandbox()->start();
  CHECK_FALSE(site.record("s1").claim);
  session->sandbox()->set_on_start([](const StartHook&) { return StartHook(); });
  session->sandbox()->stop();
  session->sandbox()->start();
  CHECK_FALSE(site.record("s1").claim);
  CHECK(calls == 2);
}

TEST_CASE("Stop, start again, and destroy") {
  Site site;
  const auto host = site.host();
  host.manager->open(spec("s1"), OpenMode::create);
  host.manager->start(SessionId("s1"));
  CHECK(site.record("s1").status == SessionStatus::running);
  host.manager->stop(SessionId("s1"));
  CHECK(site.record("s1").status == SessionStatus::stopped);
  CHECK(host.manager->start(SessionId("s1")).outcome == StartOutcome::connected);
  CHECK(site.record("s1").generation == 1);
  host.manager->destroy(SessionId("s1"));
  CHECK_FALSE(site.known("s1"));
  CHECK_FALSE(host.manager->peek(SessionId("s1")));
  CHECK(site.world->machine_count() == 0);
  host.manager->destroy(SessionId("s1"));  // what is gone is no error
}

TEST_CASE("Destroy from another host, without a start, access or settings") {
  Site site;
  const auto first = site.host();
  auto wanted = spec("s1");
  wanted.plan.repositories.resize(1);
  wanted.plan.repositories[0].url = "https://example.invalid/a/b";
  wanted.access = [](std::size_t, Handler<RepositoryAccess> done) {
    std::move(done)(Error(Status::unauthenticated, "no access", "host.none"));
  };
  first.manager->open(wanted, OpenMode::create);
  CHECK(error_of([&] { first.manager->start(SessionId("s1")); }).details.find("cause") != nullptr);
  CHECK(site.record("s1").setup == SetupState::failed);
  CHECK(site.world->machine_count() == 1);

  const auto second = site.host();
  const int starts = site.world->counts().starts;
  second.manager->destroy(SessionId("s1"));
  CHECK(site.world->counts().starts == starts);
  CHECK(site.world->machine_count() == 0);
  CHECK(site.world->creates().back().context->repository_access == nullptr);
  CHECK_FALSE(site.known("s1"));
}

TEST_CASE("What no machine was made of needs no provider to be removed") {
  Site site;
  const auto host = site.host();
  host.manager->open(spec("s1"), OpenMode::create);
  fake::StartScript script;
  script.error = Error(Status::unavailable, "there is no engine");
  SECTION("the start failed before there was one") {
    site.world->next_start(script);
    CHECK(error_of([&] { host.manager->start(SessionId("s1")); }).code == Status::unavailable);
    CHECK(site.record("s1").status == SessionStatus::created);
    site.world->next_destroy(Error(Status::unavailable, "there is no engine"));
    host.manager->destroy(SessionId("s1"));
    CHECK_FALSE(site.known("s1"));
    return;
  }
  SECTION("it may have made one") {
    script.error->may_have_started = true;
  }
  SECTION("it was cut short") {
    script.error = Error(Status::timeout, "it took too long");
  }
  SECTION("it told of one") {
    script.identity = ProviderSandboxId("early");
  }
  site.world->next_start(script);
  error_of([&] { host.manager->start(SessionId("s1")); });
  CHECK(site.record("s1").status == SessionStatus::error);
  site.world->next_destroy(Error(Status::unavailable, "there is no engine"));
  CHECK(error_of([&] { host.manager->destroy(SessionId("s1")); }).code == Status::unavailable);
  CHECK(site.known("s1"));
}

TEST_CASE("A machine that cannot be removed keeps its record") {
  Site site;
  const auto host = site.host();
  host.manager->open(spec("s1"), OpenMode::create);
  host.manager->start(SessionId("s1"));
  site.world->next_destroy(Error(Status::unavailable, "the engine is down"));
  CHECK(error_of([&] { host.manager->destroy(SessionId("s1")); }).code == Status::unavailable);
  const auto record = site.record("s1");
  CHECK(record.sandbox_id == ProviderSandboxId("m1"));
  CHECK(record.status == SessionStatus::error);
  host.manager->destroy(SessionId("s1"));
  CHECK_FALSE(site.known("s1"));
}

TEST_CASE("Sessions go on while plugins keep every blocking thread busy") {
  Site site;
  const auto host = site.host();
  std::promise<void> go;
  const auto wait = go.get_future().share();
  std::atomic<int> busy{0};
  std::vector<std::future<Result<void>>> work;
  for (std::size_t i = 0; i < Runtime::Options().blocking_threads; ++i)
    work.push_back(later<void>([&](auto done) {
      site.runtime.post_blocking(
          site.runtime.make_lane(),
          [&busy, wait] {
            ++busy;
            wait.wait();
          },
          std::move(done));
    }));
  CHECK(eventually([&] { return busy == static_cast<int>(work.size()); }));
  auto opened = later<std::shared_ptr<Session>>(
      [&](auto done) { host.manager->async_open(spec("s1"), OpenMode::create, std::move(done)); });
  const bool answered = eventually([&] { return !is_open(opened); });
  CHECK(answered);
  if (answered) {
    host.manager->start(SessionId("s1"));
    host.manager->stop(SessionId("s1"));
    host.manager->destroy(SessionId("s1"));
    CHECK(busy == static_cast<int>(work.size()));
  }
  go.set_value();
  for (auto& one : work)
    CHECK(get(one).ok());
}

TEST_CASE("A machine that is gone is made anew, as a new generation with set-up to do") {
  Site site;
  const auto host = site.host();
  const auto session = host.manager->open(spec("s1"), OpenMode::create);
  host.manager->start(SessionId("s1"));
  site.world->destroy_from_outside("s1");
  CHECK(error_of([&] { session->sandbox()->execute_command("true"); }).code == Status::gone);
  CHECK(session->sandbox()->execute_command("true").success);
  const auto record = site.record("s1");
  CHECK(record.generation == 2);
  CHECK(record.sandbox_id == ProviderSandboxId("m2"));
}

TEST_CASE("A function that opens no provider blocks nobody") {
  Site site;
  int calls = 0;
  const auto store = open_store(site.dir);
  const auto manager = SessionManager::create(
      site.runtime, store,
      [&](const SessionRecord& record, OpenPurpose, Handler<OpenedProvider> done) {
        if (++calls == 1) throw std::runtime_error("not today");
        if (calls == 2) return;
        OpenedProvider provider;
        provider.backend = site.world->provider(record.provider);
        if (calls == 3)
          provider.effective = [](const json::Object&) -> Result<json::Object> {
            throw std::runtime_error("no settings today");
          };
        std::move(done)(provider);
      },
      {});
  for (const auto* why : {"not today", "without an answer", "no settings today"}) {
    const auto error = error_of([&] { manager->open(spec("s1"), OpenMode::create); });
    CHECK(error.message.find(why) != std::string::npos);
    CHECK_FALSE(site.known("s1"));
  }
  CHECK(manager->open(spec("s1"), OpenMode::create) != nullptr);
}

TEST_CASE("Passwords in clone URLs are kept out of the record") {
  Site site;
  const auto host = site.host();
  auto wanted = spec("s1");
  wanted.plan.repositories.resize(1);
  wanted.plan.repositories[0].url = "https://me:s3cr3t@example.invalid/a/b";
  const auto session = host.manager->open(wanted, OpenMode::create);
  CHECK(session->record().plan.repositories[0].url == "https://example.invalid/a/b");
  CHECK(json::write(to_json(site.record("s1"))).find("s3cr3t") == std::string::npos);
  // The credential itself is still at hand in this host.
  bool carried = false;
  site.world->set_program([&](const std::shared_ptr<fake::Process>& process) {
    for (const auto& [name, value] : process->command.env)
      carried = carried || (value && value->find("AUTHORIZATION") != std::string::npos);
    process->start();
    process->exit(1);
  });
  CHECK_FALSE(error_of([&] { host.manager->start(SessionId("s1")); }).message.empty());
  CHECK(carried);
}

TEST_CASE("A store that fails loses no machine") {
  Site site;
  const auto host = site.host();
  const auto session = host.manager->open(spec("s1"), OpenMode::create);
  host.manager->start(SessionId("s1"));
  // The record is removed behind the host's back: the machine is still ended.
  open_store(site.dir)->erase(SessionId("s1"), std::nullopt).value();
  session->sandbox()->destroy();
  CHECK(site.world->machine_count() == 0);
  CHECK(error_of([&] { session->sandbox()->start(); }).reason == "session.removed");
}

TEST_CASE("List and forget") {
  Site site;
  const auto host = site.host();
  for (const auto* id : {"b", "a"})
    host.manager->open(spec(id), OpenMode::create);
  const auto records = host.manager->list();
  REQUIRE(records.size() == 2);
  CHECK(records[0].id.str() == "a");
  await_result<void>(
      [&](auto done) { host.manager->async_forget(SessionId("a"), std::move(done)); });
  CHECK(host.manager->list().size() == 1);
}

TEST_CASE("Names of variables are checked before anything is stored") {
  Site site;
  const auto host = site.host();
  for (const std::string bad : {"", "A=B"}) {
    auto wanted = spec("s1");
    SessionVariable variable;
    variable.name = bad;
    wanted.env = {variable};
    CHECK(error_of([&] { host.manager->open(wanted, OpenMode::create); }).reason ==
          "session.bad_env");
  }
  auto wanted = spec("s1");
  SessionVariable variable;
  variable.name = "A";
  variable.value = std::string("x\0y", 3);
  wanted.env = {variable};
  const auto error = error_of([&] { host.manager->open(wanted, OpenMode::create); });
  CHECK(error.message == "the value of A holds a NUL byte");
  CHECK_FALSE(site.known("s1"));
}
