// The session store in one SQLite file, shared by every process of a user on this machine.
#include <mutex>
#include <thread>

#include "sandforge/clock.hpp"
#include "session/claim_owner.hpp"
#include "session/private_file.hpp"
#include "session/record_json.hpp"
#include "session/sqlite_schema.hpp"

namespace sandforge {
namespace {

using sqlite::Connection;
using sqlite::Failure;
using sqlite::Statement;

constexpr std::string_view kColumns =
    "s.id, s.provider, s.revision, s.generation, s.sandbox_id, s.status, s.setup, s.settings, "
    "s.config_file, s.options, s.context, s.working_directory, s.plan, s.start_key, "
    "s.created_at_ns, s.last_used_at_ns, c.owner, c.expires_at_ms "
    "FROM session s LEFT JOIN session_claim c ON c.session_id = s.id ";

template <class T>
T take(Result<T> result) {
  if (!result) throw Failure{std::move(result).error()};
  return std::move(result).value();
}

template <class T>
T known(std::optional<T> value, std::string_view what) {
  if (value) return *value;
  throw Failure{Error(Status::internal,
                      "the session database is damaged: unknown " + std::string(what),
                      "store.corrupt")};
}

SessionRecord read_row(const Statement& row) {
  SessionRecord record;
  record.id = SessionId(row.text(0));
  record.provider = row.text(1);
  record.revision = static_cast<std::uint64_t>(row.integer(2));
  record.generation = static_cast<std::uint64_t>(row.integer(3));
  if (!row.is_null(4)) record.sandbox_id = ProviderSandboxId(row.text(4));
  record.status = known(parse_session_status(row.text(5)), "status");
  record.setup = known(parse_setup_state(row.text(6)), "set-up state");
  record.settings = take(parse_stored_object(row.text(7), "settings"));
  record.config_file = row.text(8);
  record.options = take(parse_stored_object(row.text(9), "options"));
  record.context = take(parse_stored_object(row.text(10), "context"));
  if (!row.is_null(11)) record.working_directory = row.text(11);
  record.plan = take(parse_stored_plan(row.text(12)));
  record.start_key = row.text(13);
  record.created_at_ns = row.integer(14);
  record.last_used_at_ns = row.integer(15);
  if (!row.is_null(16)) record.claim = Claim{row.text(16), row.integer(17)};
  return record;
}

std::optional<std::string> sandbox_text(const SessionRecord& record) {
  if (!record.sandbox_id) return std::nullopt;
  return record.sandbox_id->str();
}

Error claimed_by(const Claim& claim) {
  Error error(Status::conflict, "another host is changing the session", "store.claimed");
  error.details.set("owner", claim.owner);
  error.details.set("expiresAtMs", static_cast<long long>(claim.expires_at_ms));
  return error;
}

// What is written meanwhile may be lost with the machine's power: it is about processes, which are
// lost, too. The file stays whole.
class Unsynced {
 public:
  explicit Unsynced(Connection& db) : db_(db) { db_.execute("PRAGMA synchronous = NORMAL"); }
  ~Unsynced() {
    try {
      db_.execute(kSynced);
    } catch (const Failure&) {
      // It takes no lock and reads no file.
    }
  }
  Unsynced(const Unsynced&) = delete;
  Unsynced& operator=(const Unsynced&) = delete;

  // An identity that was reported stays known.
  static constexpr const char* kSynced = "PRAGMA synchronous = FULL";

 private:
  Connection& db_;
};

class SqliteSessionStore final : public SessionStore {
 public:
  explicit SqliteSessionStore(SqliteStoreOptions options) : options_(std::move(options)) {
    if (!options_.now_ms) options_.now_ms = [] { return system_clock()->now_ns() / 1'000'000; };
  }

  Result<void> open() {
    return guarded([&] {
      db_.open(options_.path, options_.busy_timeout);
      enter_wal();
      db_.execute("PRAGMA foreign_keys = ON");
      db_.execute(Unsynced::kSynced);
      sqlite::migrate(db_, options_.path);
    });
  }

  Result<SessionRecord> insert(const SessionRecord& record) override {
    return change(Sync::yes, [&] {
      if (find_row(record.id)) throw Failure{session_exists(record.id)};
      write_row(record, 1,
                "INSERT INTO session (provider, revision, generation, sandbox_id, status, setup, "
                "settings, config_file, options, context, working_directory, plan, start_key, "
                "last_used_at_ns, created_at_ns, id) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                true);
      return expect_row(record.id);
    });
  }

  Result<std::optional<SessionRecord>> find(const SessionId& id) override {
    std::optional<SessionRecord> found;
    auto result = guarded([&] { found = find_row(id); });
    if (!result) return std::move(result).error();
    return found;
  }

  Result<std::vector<SessionRecord>> list(const SessionQuery& query) override {
    std::vector<SessionRecord> records;
    auto result = guarded([&] {
      auto rows = db_.prepare("SELECT " + std::string(kColumns) +
                              "WHERE s.id > ? AND (? IS NULL OR s.provider = ?) "
                              "ORDER BY s.id LIMIT ?");
      rows.bind(query.after ? query.after->str() : std::string());
      rows.bind(query.provider).bind(query.provider);
      rows.bind(static_cast<std::int64_t>(query.limit));
      while (rows.step())
        records.push_back(read_row(rows));
      for (auto& record : records)
        read_lists(record);
    });
    if (!result) return std::move(result).error();
    return records;
  }

  Result<SessionRecord> update(const SessionRecord& record) override {
    return change(Sync::yes, [&] {
      const auto stored = expect_row(record.id);
      if (stored.revision != record.revision || stored.generation > record.generation)
        throw Failure{Error(Status::conflict,
                            "another host changed the session '" + record.id.str() + "'",
                            "store.revision")};
      write_row(record, record.revision + 1,
                "UPDATE session SET provider = ?, revision = ?, generation = ?, sandbox_id = ?, "
                "status = ?, setup = ?, settings = ?, config_file = ?, options = ?, context = ?, "
                "working_directory = ?, plan = ?, start_key = ?, "
                "last_used_at_ns = max(last_used_at_ns, ?) WHERE id = ?",
                false);
      return expect_row(record.id);
    });
  }

  Result<void> erase(const SessionId& id, std::optional<std::uint64_t> revision) override {
    return guarded([&] {
      db_.transaction([&] {
        const auto stored = find_row(id);
        if (!stored) return;
        if (revision && stored->revision != *revision)
          throw Failure{Error(Status::conflict,
                              "another host changed the session '" + id.str() + "'",
                              "store.revision")};
        db_.prepare("DELETE FROM session WHERE id = ?").bind(id.str()).run();
      });
    });
  }

  Result<void> touch(const SessionId& id, std::int64_t at_ns) override {
    return guarded([&] {
      const Unsynced cheap(db_);
      db_.prepare("UPDATE session SET last_used_at_ns = max(last_used_at_ns, ?) WHERE id = ?")
          .bind(at_ns)
          .bind(id.str())
          .run();
      if (db_.changes() == 0) throw Failure{session_not_found(id)};
    });
  }

  Result<SessionRecord> claim(const SessionId& id, const std::string& owner,
                              std::chrono::milliseconds ttl, bool steal) override {
    return change(Sync::yes, [&] {
      const auto stored = expect_row(id);
      const auto now = options_.now_ms();
      // The time runs out also when the clock is set or the machine slept: an owner that is seen to
      // live renews it.
      if (stored.claim && stored.claim->owner != owner && !steal &&
          (stored.claim->expires_at_ms > now || claim_owner_lives(stored.claim->owner)))
        throw Failure{claimed_by(*stored.claim)};
      db_.prepare(
             "INSERT INTO session_claim (session_id, owner, expires_at_ms) VALUES (?, ?, ?) "
             "ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner, "
             "expires_at_ms = excluded.expires_at_ms")
          .bind(id.str())
          .bind(owner)
          .bind(static_cast<std::int64_t>(now + ttl.count()))
          .run();
      db_.prepare("UPDATE session SET revision = revision + 1 WHERE id = ?").bind(id.str()).run();
      return expect_row(id);
    });
  }

  Result<void> renew(const SessionId& id, const std::string& owner,
                     std::chrono::milliseconds ttl) override {
    return guarded([&] {
      const Unsynced cheap(db_);
      db_.prepare("UPDATE session_claim SET expires_at_ms = ? WHERE session_id = ? AND owner = ?")
          .bind(static_cast<std::int64_t>(options_.now_ms() + ttl.count()))
          .bind(id.str())
          .bind(owner)
          .run();
      if (db_.changes() == 0)
        throw Failure{Error(Status::conflict,
                            "another host has taken over the session '" + id.str() + "'",
                            "store.claimed")};
    });
  }

  Result<SessionRecord> hold(const SessionId& id, const std::string& holder) override {
    return change(Sync::no, [&] {
      const auto stored = expect_row(id);
      const auto unused_ns = system_clock()->now_ns() - stored.last_used_at_ns;
      for (const auto& known : stored.holders)
        if (holder_is_gone(known, unused_ns))
          db_.prepare("DELETE FROM session_holder WHERE session_id = ? AND holder = ?")
              .bind(id.str())
              .bind(known)
              .run();
      db_.prepare("INSERT OR IGNORE INTO session_holder (session_id, holder) VALUES (?, ?)")
          .bind(id.str())
          .bind(holder)
          .run();
      db_.prepare("UPDATE session SET revision = revision + 1 WHERE id = ?").bind(id.str()).run();
      return expect_row(id);
    });
  }

  Result<void> release(const SessionId& id, const std::string& owner) override {
    return guarded([&] {
      const Unsynced cheap(db_);
      db_.prepare("DELETE FROM session_claim WHERE session_id = ? AND owner = ?")
          .bind(id.str())
          .bind(owner)
          .run();
    });
  }

 private:
  // Two processes that create the file at once can get "locked" without any waiting here.
  void enter_wal() {
    const auto deadline = std::chrono::steady_clock::now() + options_.busy_timeout;
    for (;;) {
      try {
        return db_.execute("PRAGMA journal_mode = WAL");
      } catch (const Failure& failure) {
        if (failure.error.reason != "store.locked" || std::chrono::steady_clock::now() >= deadline)
          throw;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  template <class Body>
  Result<void> guarded(Body&& body) {
    const std::lock_guard lock(mutex_);
    try {
      body();
      return {};
    } catch (Failure& failure) {
      // What is wrong with the file is mended where it lies.
      for (const auto* reason : {"store.corrupt", "store.forbidden", "store.cannot_open"})
        if (failure.error.reason == reason) failure.error.message += " (" + options_.path + ")";
      return std::move(failure.error);
    }
  }

  enum class Sync : std::uint8_t { no, yes };
  Result<SessionRecord> change(Sync sync, const std::function<SessionRecord()>& body) {
    std::optional<SessionRecord> record;
    auto result = guarded([&] {
      std::optional<Unsynced> cheap;
      if (sync == Sync::no) cheap.emplace(db_);
      db_.transaction([&] { record = body(); });
    });
    if (!result) return std::move(result).error();
    return std::move(*record);
  }

  std::optional<SessionRecord> find_row(const SessionId& id) {
    auto row = db_.prepare("SELECT " + std::string(kColumns) + "WHERE s.id = ?");
    row.bind(id.str());
    if (!row.step()) return std::nullopt;
    auto record = read_row(row);
    read_lists(record);
    return record;
  }

  SessionRecord expect_row(const SessionId& id) {
    auto record = find_row(id);
    if (!record) throw Failure{session_not_found(id)};
    return std::move(*record);
  }

  void read_lists(SessionRecord& record) {
    auto rows = db_.prepare(
        "SELECT name, reference FROM session_env WHERE session_id = ? ORDER BY position");
    rows.bind(record.id.str());
    while (rows.step())
      record.env.push_back({rows.text(0), rows.text(1)});
    auto holders =
        db_.prepare("SELECT holder FROM session_holder WHERE session_id = ? ORDER BY rowid");
    holders.bind(record.id.str());
    while (holders.step())
      record.holders.push_back(holders.text(0));
  }

  // Binds in the order that the INSERT and the UPDATE above share.
  void write_row(const SessionRecord& record, std::uint64_t revision, std::string_view sql,
                 bool with_created_at) {
    auto row = db_.prepare(sql);
    row.bind(record.provider).bind(revision).bind(record.generation).bind(sandbox_text(record));
    row.bind(to_string(record.status)).bind(to_string(record.setup));
    row.bind(json::write(record.settings)).bind(record.config_file);
    row.bind(json::write(record.options)).bind(json::write(record.context));
    row.bind(record.working_directory).bind(json::write(to_json(record.plan)));
    row.bind(record.start_key).bind(record.last_used_at_ns);
    if (with_created_at) row.bind(record.created_at_ns);
    row.bind(record.id.str()).run();

    db_.prepare("DELETE FROM session_env WHERE session_id = ?").bind(record.id.str()).run();
    std::int64_t position = 0;
    for (const auto& variable : record.env)
      db_.prepare(
             "INSERT INTO session_env (session_id, position, name, reference) VALUES (?, ?, ?, ?)")
          .bind(record.id.str())
          .bind(position++)
          .bind(variable.name)
          .bind(variable.reference)
          .run();
  }

  SqliteStoreOptions options_;
  std::mutex mutex_;
  Connection db_;
};

}  // namespace

Result<std::shared_ptr<SessionStore>> open_sqlite_session_store(SqliteStoreOptions options) {
  if (auto made = make_private_file(options.path); !made) return std::move(made).error();
  auto store = std::make_shared<SqliteSessionStore>(std::move(options));
  if (auto opened = store->open(); !opened) return std::move(opened).error();
  return std::shared_ptr<SessionStore>(std::move(store));
}

}  // namespace sandforge
