// D08, and what sessions add: two hosts over one store, on the real provider.
#include <fstream>

#include "contract/local_fixture.hpp"
#include "sandforge/session.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

// A host of its own over a shared database: everything but the process is separate.
class SessionHost {
 public:
  SessionHost(LocalFixture& fixture, const fs::path& database)
      : provider_(fixture.open()),
        manager_(SessionManager::create(
            fixture.runtime(), open_store(database),
            [provider = provider_](const SessionRecord&, OpenPurpose,
                                   Handler<OpenedProvider> done) {
              OpenedProvider opened;
              opened.backend = provider;
              std::move(done)(std::move(opened));
            },
            SessionManager::Options{})) {}

  SessionManager& operator*() const { return *manager_; }
  SessionManager* operator->() const { return manager_.get(); }

 private:
  static std::shared_ptr<SessionStore> open_store(const fs::path& database) {
    SqliteStoreOptions options;
    options.path = database.string();
    return open_sqlite_session_store(options).value();
  }

  std::shared_ptr<ProviderBackend> provider_;
  std::shared_ptr<SessionManager> manager_;
};

SessionSpec local_session(const std::string& id = "s") {
  SessionSpec spec;
  spec.id = SessionId(id);
  spec.provider = "local";
  return spec;
}

bool found_in_folder(const fs::path& folder, const std::string& text) {
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && read_text(entry.path()).find(text) != std::string::npos)
      return true;
  return false;
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "D08 a second host runs a command in the first one's session",
                 "[cases.D08]") {
  const fs::path state = home() / "state";
  const std::string secret = "token-value-8d1f";
  SessionHost first(*this, state / "sessions.db");
  auto spec = local_session();
  SessionVariable token;
  token.name = "TOKEN";
  token.value = secret;
  spec.env.push_back(token);
  const auto mine = first->open(spec, OpenMode::create);
  CHECK(first->start(mine->id()).outcome == StartOutcome::created);
  CHECK(mine->sandbox()->exec({"printenv", "TOKEN"}).out == secret + "\n");
  CHECK(mine->missing_env().empty());
  sh(*mine->sandbox(), "echo shared > file");

  SessionHost second(*this, state / "sessions.db");
  const auto theirs = second->attach(SessionId("s"));
  CHECK(sh(*theirs->sandbox(), "cat file").out == "shared\n");
  CHECK(theirs->sandbox()->started()->outcome == StartOutcome::connected);
  const auto printed = theirs->sandbox()->exec({"printenv", "TOKEN"});
  const bool reported = theirs->missing_env() == std::vector<std::string>{"TOKEN"};
  CHECK((printed.out == secret + "\n" || reported));
  CHECK_FALSE(found_in_folder(state, secret));
  // The first host is not disturbed.
  CHECK(mine->sandbox()->exec({"printenv", "TOKEN"}).out == secret + "\n");

  second->destroy(SessionId("s"));
  CHECK(second->list().empty());
  CHECK(nothing_runs());
}

TEST_CASE_METHOD(LocalFixture, "D08 a second host sees the processes of the first and can end them",
                 "[cases.D08]") {
  const fs::path state = home() / "state";
  SessionHost first(*this, state / "sessions.db");
  const auto mine = first->open(local_session(), OpenMode::create);
  SpawnOptions options;
  options.detach = true;
  options.tag = "server";
  const auto process = mine->sandbox()->spawn(
      shell("echo up; while [ ! -e go ]; do sleep 0.02; done; echo end"), options);
  REQUIRE(eventually([&] { return process->out() == "up\n"; }));

  SessionHost second(*this, state / "sessions.db");
  const auto theirs = second->attach(SessionId("s"));
  const auto all = theirs->sandbox()->list_processes();
  REQUIRE(all.size() == 1);
  CHECK(all[0].tag == "server");
  CHECK(all[0].running);
  const auto attached = theirs->sandbox()->get_process(all[0].id);
  REQUIRE(attached != nullptr);
  CHECK(eventually([&] { return attached->out() == "up\n"; }));
  std::ofstream(folder() / "go") << "x";
  CHECK(attached->wait().out == "up\nend\n");
  CHECK(process->wait().out == "up\nend\n");

  const auto other = mine->sandbox()->spawn(argv({"sleep", "60"}));
  for (const auto& info : theirs->sandbox()->list_processes())
    if (info.running) CHECK(theirs->sandbox()->kill_process(info.id));
  CHECK_FALSE(other->wait().success);
  first->destroy(SessionId("s"));
}

TEST_CASE_METHOD(LocalFixture,
                 "D08 two hosts that open and start a session at once have one machine",
                 "[cases.D08]") {
  const fs::path state = home() / "state";
  SessionHost first(*this, state / "sessions.db");
  SessionHost second(*this, state / "sessions.db");
  first->open(local_session(), OpenMode::either);
  second->open(local_session(), OpenMode::either);
  auto one = std::make_shared<std::promise<Result<StartedInfo>>>();
  auto two = std::make_shared<std::promise<Result<StartedInfo>>>();
  first->async_start(SessionId("s"),
                     [one](Result<StartedInfo> r) { one->set_value(std::move(r)); });
  second->async_start(SessionId("s"),
                      [two](Result<StartedInfo> r) { two->set_value(std::move(r)); });
  const auto a = one->get_future().get();
  const auto b = two->get_future().get();
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  const bool first_created = a->outcome == StartOutcome::created;
  const bool second_created = b->outcome == StartOutcome::created;
  CHECK(first_created != second_created);
  const auto records = first->list();
  REQUIRE(records.size() == 1);
  CHECK(records[0].generation == 1);
  first->destroy(SessionId("s"));
}

TEST_CASE_METHOD(LocalFixture, "D06 recreate is not offered where destroy keeps the folder",
                 "[cases.D06]") {
  SessionHost host(*this, home() / "state" / "sessions.db");
  const auto session = host->open(local_session(), OpenMode::create);
  host->start(session->id());
  sh(*session->sandbox(), "echo kept > file");
  CHECK_THROWS_AS(host->recreate(session->id()), UnsupportedFeatureError);
  CHECK(sh(*session->sandbox(), "cat file").out == "kept\n");
  host->destroy(session->id());
  CHECK(read_text(folder() / "file") == "kept\n");
}

TEST_CASE_METHOD(LocalFixture, "D13 a session's set-up that fails is marked, and runs again",
                 "[cases.D13]") {
  const fs::path state = home() / "state";
  auto spec = local_session();
  spec.plan.workspace_commands = {"echo try >> tries; test -e allowed || exit 17"};
  {
    SessionHost first(*this, state / "sessions.db");
    const auto session = first->open(spec, OpenMode::create);
    const Error error = error_of([&] { first->start(session->id()); });
    CHECK(json::write(error.details).find("17") != std::string::npos);
    CHECK(session->record().setup == SetupState::failed);
  }
  std::ofstream(folder() / "allowed") << "x";
  SessionHost second(*this, state / "sessions.db");
  const auto session = second->attach(SessionId("s"));
  CHECK_NOTHROW(second->start(session->id()));
  CHECK(session->record().setup == SetupState::done);
  CHECK(read_text(folder() / "tries") == "try\ntry\n");
  CHECK(fs::exists(folder() / ".mastra-bootstrapped"));
  second->stop(session->id());
  second->start(session->id());
  CHECK(read_text(folder() / "tries") == "try\ntry\n");
  second->destroy(session->id());
}
