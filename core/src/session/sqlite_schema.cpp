#include "session/sqlite_schema.hpp"

#include <array>
#include <string>

namespace sandforge::sqlite {
namespace {

// Entry n leads from version n to n + 1. A released entry is never changed.
constexpr std::array<const char*, 2> kSteps = {
    R"sql(
CREATE TABLE session (
  id                TEXT    NOT NULL PRIMARY KEY,
  provider          TEXT    NOT NULL,
  revision          INTEGER NOT NULL CHECK (revision > 0),
  generation        INTEGER NOT NULL CHECK (generation >= 0),
  sandbox_id        TEXT,
  status            TEXT    NOT NULL,
  setup             TEXT    NOT NULL,
  settings          TEXT    NOT NULL,
  config_file       TEXT    NOT NULL,
  options           TEXT    NOT NULL,
  context           TEXT    NOT NULL,
  working_directory TEXT,
  plan              TEXT    NOT NULL,
  start_key         TEXT    NOT NULL,
  created_at_ns     INTEGER NOT NULL,
  last_used_at_ns   INTEGER NOT NULL
) STRICT;
CREATE INDEX session_provider ON session (provider, id);

CREATE TABLE session_env (
  session_id TEXT    NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  position   INTEGER NOT NULL,
  name       TEXT    NOT NULL,
  reference  TEXT    NOT NULL,
  PRIMARY KEY (session_id, name)
) STRICT;

CREATE TABLE session_claim (
  session_id    TEXT    NOT NULL PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  owner         TEXT    NOT NULL,
  expires_at_ms INTEGER NOT NULL
) STRICT;
)sql",
    R"sql(
CREATE TABLE session_holder (
  session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  holder     TEXT NOT NULL,
  PRIMARY KEY (session_id, holder)
) STRICT;
)sql",
};

std::int64_t pragma(Connection& db, std::string_view name) {
  auto statement = db.prepare("PRAGMA " + std::string(name));
  return statement.step() ? statement.integer(0) : 0;
}

void check_owner(Connection& db, const std::string& path) {
  // One snapshot for both questions: another process may be creating the tables now.
  auto statement = db.prepare(
      "SELECT (SELECT application_id FROM pragma_application_id), "
      "(SELECT count(*) FROM sqlite_schema)");
  statement.step();
  if (statement.integer(0) == kApplicationId) return;
  if (statement.integer(0) != 0 || statement.integer(1) != 0)
    throw Failure{
        Error(Status::internal, path + " is the database of another program", "store.foreign")};
}

}  // namespace

void migrate(Connection& db, const std::string& path) {
  const auto newest = static_cast<std::int64_t>(kSteps.size());
  check_owner(db, path);
  for (;;) {
    auto version = pragma(db, "user_version");
    if (version < 0 || version > newest) {
      Error error(Status::unsupported,
                  "the session database " + path + " was written by a newer version (schema " +
                      std::to_string(version) + ", this one knows " + std::to_string(newest) + ")",
                  "store.newer_schema");
      error.details.set("found", static_cast<long long>(version));
      error.details.set("known", static_cast<long long>(newest));
      throw Failure{std::move(error)};
    }
    if (version == newest) return;
    db.transaction([&] {
      // Another process may have done this step while we waited for the lock.
      if (pragma(db, "user_version") != version) return;
      db.execute(kSteps[static_cast<std::size_t>(version)]);
      db.execute(("PRAGMA user_version = " + std::to_string(version + 1)).c_str());
      db.execute(("PRAGMA application_id = " + std::to_string(kApplicationId)).c_str());
    });
  }
}

}  // namespace sandforge::sqlite
