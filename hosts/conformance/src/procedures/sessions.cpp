// D08, D13, D17: two hosts over one store of sessions.
#include <algorithm>
#include <fstream>
#include <future>
#include <sstream>

#include "procedure.hpp"
#include "sandforge/session.hpp"

namespace sandforge::conformance {
namespace {

// A host of its own over a shared database: everything but the process is separate.
class SessionHost {
 public:
  SessionHost(Host& host, const fs::path& database)
      : provider_(host.open()),
        manager_(SessionManager::create(
            host.runtime(), open_store(database),
            [provider = provider_](const SessionRecord&, OpenPurpose,
                                   Handler<OpenedProvider> done) {
              OpenedProvider opened;
              opened.backend = provider;
              std::move(done)(std::move(opened));
            },
            SessionManager::Options{})) {}

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

fs::path database(Host& host) {
  return host.scratch() / "state" / "sessions.db";
}

SessionSpec spec_of(Host& host) {
  SessionSpec spec;
  spec.id = SessionId(host.id());
  spec.provider = host.provider_name();
  return spec;
}

bool found_in_folder(const fs::path& folder, const std::string& text) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::ostringstream content;
    content << in.rdbuf();
    if (content.str().find(text) != std::string::npos) return true;
  }
  return false;
}

void second_host(Host& host) {
  const std::string secret = "token-value-" + host.setting().token;
  SessionHost first(host, database(host));
  auto spec = spec_of(host);
  SessionVariable token;
  token.name = "TOKEN";
  token.value = secret;
  spec.env.push_back(token);
  const auto mine = first->open(spec, OpenMode::create);
  CHECK(first->start(mine->id()).outcome == StartOutcome::created);
  CHECK(mine->sandbox()->exec({"printenv", "TOKEN"}).out == secret + "\n");
  CHECK(mine->missing_env().empty());
  sh(*mine->sandbox(), "echo shared > file");

  SessionHost second(host, database(host));
  const auto theirs = second->attach(mine->id());
  CHECK(sh(*theirs->sandbox(), "cat file").out == "shared\n");
  CHECK(theirs->sandbox()->started()->outcome == StartOutcome::connected);
  const auto printed = theirs->sandbox()->exec({"printenv", "TOKEN"});
  const bool reported = theirs->missing_env() == std::vector<std::string>{"TOKEN"};
  CHECK((printed.out == secret + "\n" || reported));
  CHECK_FALSE(found_in_folder(database(host).parent_path(), secret));
  // The first host is not disturbed.
  CHECK(mine->sandbox()->exec({"printenv", "TOKEN"}).out == secret + "\n");

  host.keep_folder_of(*mine->sandbox());
  second->destroy(mine->id());
  CHECK(second->list().empty());
}

void second_host_sees_processes(Host& host) {
  SessionHost first(host, database(host));
  const auto mine = first->open(spec_of(host), OpenMode::create);
  SpawnOptions options;
  options.detach = true;
  options.tag = "server";
  const auto process = mine->sandbox()->spawn(
      shell("echo up; while [ ! -e go ]; do sleep 0.02; done; echo end"), options);
  REQUIRE(eventually([&] { return process->out() == "up\n"; }));

  SessionHost second(host, database(host));
  const auto theirs = second->attach(mine->id());
  const auto all = theirs->sandbox()->list_processes();
  REQUIRE(all.size() == 1);
  CHECK(all[0].tag == "server");
  CHECK(all[0].running);
  const auto attached = theirs->sandbox()->get_process(all[0].id);
  REQUIRE((attached != nullptr));
  CHECK(eventually([&] { return attached->out() == "up\n"; }));
  touch(*theirs->sandbox(), "go");
  CHECK(attached->wait().out == "up\nend\n");
  CHECK(process->wait().out == "up\nend\n");

  const auto other = mine->sandbox()->spawn(argv({"sleep", "60"}));
  for (const auto& info : theirs->sandbox()->list_processes())
    if (info.running) CHECK(theirs->sandbox()->kill_process(info.id));
  CHECK_FALSE(other->wait().success);
  host.keep_folder_of(*mine->sandbox());
  first->destroy(mine->id());
}

void two_hosts_at_once(Host& host) {
  SessionHost first(host, database(host));
  SessionHost second(host, database(host));
  const auto mine = first->open(spec_of(host), OpenMode::either);
  second->open(spec_of(host), OpenMode::either);
  auto one = std::make_shared<std::promise<Result<StartedInfo>>>();
  auto two = std::make_shared<std::promise<Result<StartedInfo>>>();
  first->async_start(mine->id(), [one](Result<StartedInfo> r) { one->set_value(std::move(r)); });
  second->async_start(mine->id(), [two](Result<StartedInfo> r) { two->set_value(std::move(r)); });
  const auto a = one->get_future().get();
  const auto b = two->get_future().get();
  for (const auto* start : {&a, &b})
    if (!start->ok()) findings().add("a start failed: " + start->error().message);
  REQUIRE((a.ok() && b.ok()));
  CHECK((a->outcome == StartOutcome::created) != (b->outcome == StartOutcome::created));
  const auto records = first->list();
  REQUIRE(records.size() == 1);
  CHECK(records[0].generation == 1);
  host.keep_folder_of(*mine->sandbox());
  first->destroy(mine->id());
}

void setup_runs_again(Host& host) {
  auto spec = spec_of(host);
  spec.plan.workspace_commands = {"echo try >> tries; test -e allowed || exit 17"};
  {
    SessionHost first(host, database(host));
    const auto session = first->open(spec, OpenMode::create);
    const Error error = error_of([&] { first->start(session->id()); });
    CHECK(json::write(error.details).find("17") != std::string::npos);
    CHECK((session->record().setup == SetupState::failed));
  }
  const auto helper = host.make();
  touch(*helper, "allowed");
  SessionHost second(host, database(host));
  const auto session = second->attach(SessionId(host.id()));
  CHECK_NOTHROW(second->start(session->id()));
  CHECK((session->record().setup == SetupState::done));
  CHECK(read_file(*session->sandbox(), "tries") == "try\ntry\n");
  second->stop(session->id());
  second->start(session->id());
  CHECK(read_file(*session->sandbox(), "tries") == "try\ntry\n");
  host.keep_folder_of(*session->sandbox());
  second->destroy(session->id());
}

// The old machine goes, the new one answers created; where destroy keeps the session's directory it
// is refused, and nothing happens.
void recreate(Host& host) {
  {
    SessionHost first(host, database(host));
    const auto session = first->open(spec_of(host), OpenMode::create);
    first->start(session->id());
    sh(*session->sandbox(), "echo old > file");
  }
  SessionHost second(host, database(host));
  const auto session = second->attach(SessionId(host.id()));
  if (host.has("destroy.keeps_directory")) {
    CHECK_THROWS_AS(second->recreate(session->id()), UnsupportedFeatureError);
    CHECK(sh(*session->sandbox(), "cat file").out == "old\n");
  } else {
    CHECK(second->recreate(session->id()).outcome == StartOutcome::created);
    CHECK(second->attach(session->id())->sandbox()->exec({"true"}).success);
  }
  host.keep_folder_of(*session->sandbox());
  second->destroy(session->id());
}

// The value that a session had at its start, and what is left of it when it is taken away.
void credential_is_removed(Host& host) {
  const auto start_with = [&](std::optional<EnvMap> env) {
    auto config = host.config();
    config.env = std::move(env);
    const auto sandbox = host.make(config);
    sandbox->start();
    return sandbox;
  };
  const std::string value = "credential-" + host.setting().token;
  const auto first = start_with(EnvMap{{"CREDENTIAL", value}});
  CHECK(first->exec({"printenv", "CREDENTIAL"}).out == value + "\n");
  first->stop();
  const auto resumed = start_with(EnvMap{});
  const auto kept = resumed->exec({"printenv", "CREDENTIAL"});
  // Who keeps what the machine was made with says so.
  if (kept.success) CHECK(host.has("env.at_provision"));
  resumed->destroy();
  const auto fresh = host.make("fresh");
  CHECK_FALSE(fresh->exec({"printenv", "CREDENTIAL"}).success);
}

// Options' variables are those of the machine, from when it was made: the next host's have no
// effect on it, and it tells which ones it has.
void keeps_environment(Host& host) {
  const std::string value = "credential-" + host.setting().token;
  const auto open_with = [&](const char* name) {
    json::Object env, changes;
    env.set(name, value);
    changes.set("env", std::move(env));
    return host.open(changes);
  };
  const auto config = host.config();
  const auto first = host.make(open_with("CREDENTIAL"), config);
  CHECK(first->start().env_names.empty());
  CHECK(first->exec({"printenv", "CREDENTIAL"}).out == value + "\n");
  first->stop();

  const auto resumed = host.make(open_with("OTHER"), config);
  const auto started = resumed->start();
  CHECK(started.outcome == StartOutcome::connected);
  CHECK(resumed->exec({"printenv", "CREDENTIAL"}).out == value + "\n");
  CHECK_FALSE(resumed->exec({"printenv", "OTHER"}).success);
  const auto told = [&](const std::string& name) {
    return std::count(started.env_names.begin(), started.env_names.end(), name) == 1;
  };
  CHECK(told("CREDENTIAL"));
  CHECK_FALSE(told("OTHER"));
  const std::string info = json::write(to_json(resumed->info()));
  CHECK(info.find("CREDENTIAL") != std::string::npos);
  CHECK(info.find(value) == std::string::npos);

  resumed->destroy();
  CHECK(resumed->start().outcome == StartOutcome::created);
  CHECK(resumed->exec({"printenv", "OTHER"}).out == value + "\n");
  CHECK_FALSE(resumed->exec({"printenv", "CREDENTIAL"}).success);
}

}  // namespace

void add_sessions(Procedures& to) {
  to["sessions.second_host"] = second_host;
  to["sessions.second_host_sees_processes"] = second_host_sees_processes;
  to["sessions.two_hosts_at_once"] = two_hosts_at_once;
  to["sessions.setup_runs_again"] = setup_runs_again;
  to["sessions.recreate"] = recreate;
  to["sessions.credential_is_removed"] = credential_is_removed;
  to["sessions.keeps_environment"] = keeps_environment;
}

}  // namespace sandforge::conformance
