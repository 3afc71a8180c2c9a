#include "sandforge/session_store.hpp"

#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "support/temp_dir.hpp"

using namespace sandforge;
using std::chrono::milliseconds;
using test::TempDir;

namespace {

std::shared_ptr<SessionStore> open(const std::string& path,
                                   std::function<std::int64_t()> now = nullptr) {
  SqliteStoreOptions options;
  options.path = path;
  options.now_ms = std::move(now);
  return open_sqlite_session_store(options).value();
}

SessionRecord sample(const std::string& id) {
  SessionRecord record;
  record.id = SessionId(id);
  record.provider = "fake";
  record.settings.set("cpuCount", 4);
  record.config_file = "/etc/sandforge.yaml";
  record.options.set("apiKey", "${FAKE_KEY}");
  record.context.set("factoryId", "f1");
  record.working_directory = "/work";
  record.env = {{"TOKEN", ""}, {"API", "${HOST_API}"}};
  RepositoryPlan repository;
  repository.url = "https://example.com/a/b.git";
  repository.ref = "main";
  repository.directory = "b";
  repository.setup_commands = {"make"};
  repository.credential = "file:/run/token";
  record.plan.repositories.push_back(repository);
  record.plan.workspace_commands = {"touch .ready"};
  record.plan.list_form = true;
  record.plan.continue_on_failure = true;
  record.start_key = "key-1";
  record.created_at_ns = 5;
  record.last_used_at_ns = 6;
  return record;
}

void sql(const std::string& path, const std::string& text) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  REQUIRE(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

}  // namespace

TEST_CASE("A record is read back as it was stored, also by another process's connection") {
  TempDir dir;
  const std::string path = dir / "a/b/sessions.db";
  const auto inserted = open(path)->insert(sample("s1")).value();
  CHECK(inserted.revision == 1);

  const auto found = open(path)->find(SessionId("s1")).value();
  REQUIRE(found);
  CHECK(to_json(*found) == to_json(inserted));
  CHECK(found->provider == "fake");
  CHECK_FALSE(found->sandbox_id);
  CHECK(found->plan.repositories.at(0).credential == "file:/run/token");
  CHECK(found->start_key == "key-1");
  REQUIRE(found->env.size() == 2);
  CHECK(found->env[0].name == "TOKEN");
  CHECK(found->env[1].reference == "${HOST_API}");
  CHECK_FALSE(open(path)->find(SessionId("s2")).value());

  CHECK(mode_of(path) == 0600);
  CHECK(mode_of(dir / "a") == 0700);
  CHECK(mode_of(dir / "a/b") == 0700);
}

TEST_CASE("An id is taken once") {
  TempDir dir;
  const auto store = open(dir / "s.db");
  REQUIRE(store->insert(sample("s1")).ok());
  const auto again = store->insert(sample("s1"));
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().code == Status::already_exists);
}

TEST_CASE("Update is compare and set, and a generation never goes back") {
  TempDir dir;
  const auto store = open(dir / "s.db");
  auto first = store->insert(sample("s1")).value();
  auto second = first;
  first.sandbox_id = ProviderSandboxId("m-1");
  first.generation = 3;
  first = store->update(first).value();
  CHECK(first.revision == 2);
  CHECK(first.sandbox_id == ProviderSandboxId("m-1"));

  const auto late = store->update(second);
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().reason == "store.revision");

  first.generation = 2;
  CHECK(store->update(first).error().reason == "store.revision");

  auto unknown = sample("nobody");
  unknown.revision = 1;
  CHECK(store->update(unknown).error().code == Status::not_found);
}

TEST_CASE("Erase removes the named revision, and what is gone is no error") {
  TempDir dir;
  const auto store = open(dir / "s.db");
  auto record = store->insert(sample("s1")).value();
  CHECK(store->erase(record.id, 7).error().reason == "store.revision");
  REQUIRE(store->erase(record.id, 1).ok());
  CHECK_FALSE(store->find(record.id).value());
  CHECK(store->erase(record.id, std::nullopt).ok());
  // Nothing of it is left for a session of the same name.
  auto bare = SessionRecord();
  bare.id = record.id;
  bare.provider = "fake";
  CHECK(store->insert(bare).value().env.empty());
}

TEST_CASE("List gives pages in the order of the ids") {
  TempDir dir;
  const auto store = open(dir / "s.db");
  for (const auto* id : {"c", "a", "d", "b"}) {
    auto record = sample(id);
    record.provider = *id == 'd' ? "other" : "fake";
    REQUIRE(store->insert(record).ok());
  }
  SessionQuery query;
  query.limit = 2;
  auto page = store->list(query).value();
  REQUIRE(page.size() == 2);
  CHECK(page[1].id.str() == "b");
  CHECK(page[1].env.size() == 2);
  query.after = page[1].id;
  page = store->list(query).value();
  REQUIRE(page.size() == 2);
  CHECK(page[0].id.str() == "c");
  query.after.reset();
  query.provider = "other";
  CHECK(store->list(query).value().size() == 1);
}

TEST_CASE("A claim is held by one owner until it is released, expires or is stolen") {
  TempDir dir;
  std::int64_t now = 1000;
  const auto store = open(dir / "s.db", [&] { return now; });
  const auto record = store->insert(sample("s1")).value();
  const auto id = record.id;

  const auto held = store->claim(id, "host-a", milliseconds(100), false).value();
  CHECK(held.revision == 2);
  CHECK(held.claim->owner == "host-a");
  CHECK(held.claim->expires_at_ms == 1100);

  const auto refused = store->claim(id, "host-b", milliseconds(100), false);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().reason == "store.claimed");
  CHECK(refused.error().details.find("owner")->as_string() == "host-a");
  CHECK(store->renew(id, "host-b", milliseconds(100)).error().reason == "store.claimed");

  now = 1050;
  REQUIRE(store->renew(id, "host-a", milliseconds(100)).ok());
  now = 1149;
  CHECK_FALSE(store->claim(id, "host-b", milliseconds(100), false).ok());
  now = 1151;
  CHECK(store->claim(id, "host-b", milliseconds(100), false).ok());
  CHECK_FALSE(store->renew(id, "host-a", milliseconds(100)).ok());

  const auto stolen = store->claim(id, "host-c", milliseconds(100), true).value();
  CHECK(stolen.claim->owner == "host-c");
  // The owner from before is fenced off.
  CHECK(store->update(held).error().reason == "store.revision");

  REQUIRE(store->release(id, "host-a").ok());
  CHECK(store->find(id).value()->claim->owner == "host-c");
  REQUIRE(store->release(id, "host-c").ok());
  CHECK_FALSE(store->find(id).value()->claim);
  CHECK(store->claim(SessionId("nobody"), "x", milliseconds(1), true).error().code ==
        Status::not_found);
}

TEST_CASE("Touch notes the newest use and changes no revision") {
  TempDir dir;
  const auto store = open(dir / "s.db");
  const auto record = store->insert(sample("s1")).value();
  REQUIRE(store->touch(record.id, 50).ok());
  REQUIRE(store->touch(record.id, 40).ok());
  const auto found = store->find(record.id).value();
  CHECK(found->last_used_at_ns == 50);
  CHECK(found->revision == 1);
  CHECK(store->touch(SessionId("nobody"), 1).error().code == Status::not_found);
}

TEST_CASE("Many connections that open a new file at once all succeed") {
  TempDir dir;
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i)
    threads.emplace_back([&, i] {
      SqliteStoreOptions options;
      options.path = dir / "s.db";
      options.busy_timeout = milliseconds(60'000);
      auto store = open_sqlite_session_store(options);
      if (store.ok() && (*store)->insert(sample("s" + std::to_string(i))).ok()) ++good;
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(good == 12);
  CHECK(open(dir / "s.db")->list({}).value().size() == 12);
}

TEST_CASE("Many writers at once wait for each other for as long as some of them get on") {
  TempDir dir;
  open(dir / "s.db")->insert(sample("s1")).value();
  constexpr int kWriters = 60, kTurns = 40;
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kWriters; ++i)
    threads.emplace_back([&, i] {
      SqliteStoreOptions options;
      options.path = dir / "s.db";
      options.busy_timeout = milliseconds(2000);  // less than all of it takes
      const auto store = open_sqlite_session_store(options);
      if (!store.ok()) return;
      for (int turn = 0; turn < kTurns; ++turn) {
        if (!(*store)->insert(sample(std::to_string(i) + "-" + std::to_string(turn))).ok()) return;
        if (!(*store)->hold(SessionId("s1"), "host-" + std::to_string(i)).ok()) return;
        if (!(*store)->touch(SessionId("s1"), turn).ok()) return;
      }
      ++good;
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(good == kWriters);
}

TEST_CASE("Of many hosts that claim one session at once exactly one gets it") {
  TempDir dir;
  open(dir / "s.db")->insert(sample("s1")).value();
  std::atomic<int> winners{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      SqliteStoreOptions options;
      options.path = dir / "s.db";
      options.busy_timeout = milliseconds(60'000);
      auto store = open_sqlite_session_store(options);
      if (!store.ok()) return;
      auto claimed = (*store)->claim(SessionId("s1"), "host-" + std::to_string(i),
                                     milliseconds(600'000), false);
      if (claimed.ok()) ++winners;
      if (!claimed.ok() && claimed.error().reason == "store.claimed") ++refused;
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(winners == 1);
  CHECK(refused == 7);
}

TEST_CASE("A database of a newer version is refused and left alone") {
  TempDir dir;
  const std::string path = dir / "s.db";
  open(path)->insert(sample("s1")).value();
  sql(path, "PRAGMA user_version = 99");
  SqliteStoreOptions options;
  options.path = path;
  const auto refused = open_sqlite_session_store(options);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Status::unsupported);
  CHECK(refused.error().reason == "store.newer_schema");
  CHECK(refused.error().details.find("found")->as_integer() == 99);
  CHECK(refused.error().message.find(path) != std::string::npos);
  sql(path, "PRAGMA user_version = 2");
  CHECK(open(path)->find(SessionId("s1")).value());
}

TEST_CASE("A database of the first version gets the table of holders") {
  TempDir dir;
  const std::string path = dir / "s.db";
  open(path)->insert(sample("s1")).value();
  sql(path, "DROP TABLE session_holder");
  sql(path, "PRAGMA user_version = 1");
  const auto store = open(path);
  CHECK(store->find(SessionId("s1")).value()->holders.empty());
  CHECK(store->hold(SessionId("s1"), "me").value().holders == std::vector<std::string>{"me"});
}

TEST_CASE("Holders are noted once, count the revision, and go with the session") {
  TempDir dir;
  const auto store = open(dir / "s.db");
  const SessionId id("s1");
  CHECK(store->hold(id, "a").error().reason == "session.not_found");
  const auto first = store->insert(sample("s1")).value();
  CHECK(first.holders.empty());
  store->hold(id, "b").value();
  store->hold(id, "a").value();
  const auto held = store->hold(id, "b").value();
  CHECK(held.holders == std::vector<std::string>{"b", "a"});
  CHECK(held.revision == first.revision + 3);
  CHECK(store->update(first).error().reason == "store.revision");
  CHECK(store->update(held).value().holders == held.holders);
  CHECK(store->list({}).value().at(0).holders == held.holders);
  CHECK(store->erase(id, std::nullopt).ok());
  CHECK(store->insert(sample("s1")).value().holders.empty());
}

TEST_CASE("Files that are no session database are refused") {
  TempDir dir;
  SqliteStoreOptions options;
  options.path = dir / "text";
  std::ofstream(options.path) << std::string(5000, 'x');
  CHECK(open_sqlite_session_store(options).error().reason == "store.corrupt");

  options.path = dir / "other.db";
  sql(options.path, "CREATE TABLE mine (x)");
  const auto foreign = open_sqlite_session_store(options);
  CHECK(foreign.error().reason == "store.foreign");
  CHECK(foreign.error().message == options.path + " is the database of another program");

  options.path = dir / "folder";
  ::mkdir(options.path.c_str(), 0700);
  CHECK(open_sqlite_session_store(options).error().reason == "store.unsafe_permissions");

  options.path = dir / "link";
  REQUIRE(::symlink((dir / "elsewhere").c_str(), options.path.c_str()) == 0);
  CHECK(open_sqlite_session_store(options).error().reason == "store.unsafe_permissions");

  ::mkdir((dir / "open").c_str(), 0777);
  REQUIRE(::chmod((dir / "open").c_str(), 0777) == 0);
  options.path = dir / "open/s.db";
  CHECK(open_sqlite_session_store(options).error().reason == "store.unsafe_permissions");
}

TEST_CASE("A folder that cannot be made says what it was to hold") {
  SqliteStoreOptions options;
  options.path = "/proc/sandforge/s.db";
  CHECK(open_sqlite_session_store(options).error().message ==
        "the sessions cannot be kept there: /proc/sandforge: No such file or directory");
}

TEST_CASE("A database file that others could read is closed to them") {
  TempDir dir;
  open(dir / "s.db");
  REQUIRE(::chmod((dir / "s.db").c_str(), 0644) == 0);
  open(dir / "s.db");
  CHECK(mode_of(dir / "s.db") == 0600);
}

TEST_CASE("A folder above the database may be a link, the database itself may not") {
  TempDir dir;
  REQUIRE(::mkdir((dir / "real").c_str(), 0700) == 0);
  REQUIRE(::symlink((dir / "real").c_str(), (dir / "link").c_str()) == 0);
  const std::string path = dir / "link/state/s.db";
  REQUIRE(open(path)->insert(sample("s1")).ok());
  CHECK(open(dir / "real/state/s.db")->find(SessionId("s1")).value());

  REQUIRE(::symlink("s.db", (dir / "real/state/other.db").c_str()) == 0);
  SqliteStoreOptions options;
  options.path = dir / "link/state/other.db";
  const auto refused = open_sqlite_session_store(options);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().reason == "store.unsafe_permissions");
}

TEST_CASE("A locked database says so, and works when the lock is gone") {
  TempDir dir;
  const std::string path = dir / "s.db";
  SqliteStoreOptions options;
  options.path = path;
  options.busy_timeout = milliseconds(30);
  const auto store = open_sqlite_session_store(options).value();
  REQUIRE(store->insert(sample("s1")).ok());

  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
  const auto refused = store->insert(sample("s2"));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Status::unavailable);
  CHECK(refused.error().reason == "store.locked");
  CHECK(refused.error().retry_after);
  sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
  sqlite3_close(other);

  CHECK(store->insert(sample("s2")).ok());
  CHECK(store->list({}).value().size() == 2);
}

namespace {

// In a child process of its own: the limit holds for every file that it writes.
int fill_until_full(const std::string& path) {
  std::signal(SIGXFSZ, SIG_IGN);
  const auto store = open(path);
  if (!store->insert(sample("kept")).ok()) return 10;
  const rlimit limit{400'000, 400'000};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 11;
  for (int i = 0; i < 1000; ++i) {
    auto record = sample("s" + std::to_string(i));
    record.config_file = std::string(20'000, 'c');
    const auto inserted = store->insert(record);
    if (inserted.ok()) continue;
    if (inserted.error().code != Status::no_space) return 12;
    if (inserted.error().reason != "store.full") return 13;
    const auto kept = store->find(SessionId("kept"));
    return kept.ok() && *kept ? 0 : 14;
  }
  return 15;
}

}  // namespace

TEST_CASE("A full disk says so and loses no session") {
  TempDir dir;
  const std::string path = dir / "s.db";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(fill_until_full(path));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(open(path)->find(SessionId("kept")).value());
}
