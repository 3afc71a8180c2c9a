// Where sessions are kept between calls of a host, and shared by hosts that have the same state.
//
// Every function may block on a disk or a database: call it on the blocking pool, never on a lane.
// All of them are safe from any thread. An error never leaves half a change behind.
//
// Errors: not_found; already_exists; conflict "store.revision" (somebody else wrote since the
// record was read) and "store.claimed"; no_space (disk full, quota, file limit); unavailable
// (locked, unreachable); forbidden (permissions); unsupported "store.newer_schema"; internal
// "store.corrupt".
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandforge/error.hpp"
#include "sandforge/ids.hpp"
#include "sandforge/setup_plan.hpp"

namespace sandforge {

// The right to change a session's machine, for the time of a start, a stop or a removal. It is not
// needed to run commands: several hosts may use one session.
struct Claim {
  std::string owner;
  std::int64_t expires_at_ms = 0;  // Unix time
};

enum class SessionStatus : std::uint8_t {
  created,   // recorded, no machine: not started yet, or a start failed before there was one
  starting,  // a host is starting it, or was when it died
  running,
  stopped,
  error,  // the last start or stop failed
};
std::string_view to_string(SessionStatus status) noexcept;
std::optional<SessionStatus> parse_session_status(std::string_view text) noexcept;

enum class SetupState : std::uint8_t {
  none,     // nothing to do, or not begun on this machine
  running,  // begun; unfinished when no host holds the claim
  done,
  failed,
};
std::string_view to_string(SetupState state) noexcept;
std::optional<SetupState> parse_setup_state(std::string_view text) noexcept;

// A variable of the session. The value itself is never stored: only where a later host finds it.
struct EnvReference {
  std::string name;
  std::string reference;  // "${NAME}", "file:PATH", or empty: a later host reports it missing
};

struct SessionRecord {
  SessionId id;
  std::string provider;
  std::uint64_t revision = 0;    // of this record; the store counts it
  std::uint64_t generation = 0;  // of the machine: 0 before the first, never goes back
  std::optional<ProviderSandboxId> sandbox_id;
  SessionStatus status = SessionStatus::created;
  SetupState setup = SetupState::none;
  json::Object settings;    // as stored: without defaults
  std::string config_file;  // that named the options; may be empty
  json::Object options;     // of the provider, with references in place of secrets
  json::Object context;     // factoryId, factoryName, repoFullName, template
  std::optional<std::string> working_directory;
  std::vector<EnvReference> env;
  SetupPlan plan;         // URLs without credentials
  std::string start_key;  // idempotency key of the machine's creation
  std::int64_t created_at_ns = 0;
  std::int64_t last_used_at_ns = 0;
  std::optional<Claim> claim;  // read only: claim and release change it
  // Who has it open, also those whose process has ended since. Read only: hold adds to them.
  std::vector<std::string> holders;
};
json::Value to_json(const SessionRecord& record);
// Recorded, and no start of it can have made a machine that is still there.
inline bool has_no_machine(const SessionRecord& record) {
  return record.status == SessionStatus::created && !record.sandbox_id;
}

// What a store, and who looks into one, says of an id.
Error session_not_found(const SessionId& id);  // not_found "session.not_found"
Error session_exists(const SessionId& id);     // already_exists "session.exists"

struct SessionQuery {
  std::optional<SessionId> after;  // page: ids greater than this one
  std::size_t limit = 1000;
  std::optional<std::string> provider;
};

class SessionStore {
 public:
  virtual ~SessionStore() = default;

  // The record as it was stored, with revision 1. already_exists: the id is taken.
  virtual Result<SessionRecord> insert(const SessionRecord& record) = 0;
  // Nothing when the id is unknown.
  virtual Result<std::optional<SessionRecord>> find(const SessionId& id) = 0;
  // Ordered by id.
  virtual Result<std::vector<SessionRecord>> list(const SessionQuery& query) = 0;
  // Compare and set: writes when the stored revision is record.revision and the generation does not
  // go back, else conflict "store.revision". Answers with the next revision.
  virtual Result<SessionRecord> update(const SessionRecord& record) = 0;
  // As update: only this revision is removed. Absent: success.
  virtual Result<void> erase(const SessionId& id, std::optional<std::uint64_t> revision) = 0;
  // Notes the time of use; changes no revision.
  virtual Result<void> touch(const SessionId& id, std::int64_t at_ns) = 0;

  // Takes the claim when it is free, expired and not of a process that is known to live, or already
  // the owner's. conflict "store.claimed" with
  // details owner and expiresAtMs otherwise. With `steal` it is taken from whoever has it, whose
  // next update then fails. Counts the revision, so that the record read here is the newest.
  virtual Result<SessionRecord> claim(const SessionId& id, const std::string& owner,
                                      std::chrono::milliseconds ttl, bool steal) = 0;
  // conflict "store.claimed": it is no longer the owner's.
  virtual Result<void> renew(const SessionId& id, const std::string& owner,
                             std::chrono::milliseconds ttl) = 0;
  // Notes who has the session open, and forgets those whose process has ended, or cannot be looked
  // for while the session was not used for a week. Counts the revision.
  virtual Result<SessionRecord> hold(const SessionId& id, const std::string& holder) = 0;
  // No effect when it is not the owner's.
  virtual Result<void> release(const SessionId& id, const std::string& owner) = 0;
};

struct SqliteStoreOptions {
  std::string path;  // of the database file; its folder is made with mode 0700
  std::chrono::milliseconds busy_timeout{5000};  // while nobody else gets on; 12 times that in all
  std::function<std::int64_t()> now_ms;          // of claims; null: the system clock
};

// Opens or creates the file (mode 0600, WAL) and brings it to this version's schema. Blocks.
Result<std::shared_ptr<SessionStore>> open_sqlite_session_store(SqliteStoreOptions options);

}  // namespace sandforge
