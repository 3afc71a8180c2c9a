#include "session/sqlite.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <thread>

namespace sandforge::sqlite {
namespace {

constexpr std::chrono::milliseconds kLook{20};  // many that look more often keep the machine busy
constexpr int kLongestStalls = 12;

// A write beyond a file-size limit or a quota reaches us as an I/O error. Its errno is the
// thread's: sqlite3_system_errno is overwritten by the roll-back that follows.
bool disk_is_full(int code, int thread_errno) {
  if ((code & 0xff) == SQLITE_FULL) return true;
  return (code & 0xff) == SQLITE_IOERR &&
         (thread_errno == ENOSPC || thread_errno == EDQUOT || thread_errno == EFBIG);
}

Error error_of(sqlite3* db, int code) {
  const int thread_errno = errno;
  const std::string text = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  if (disk_is_full(code, thread_errno))
    return Error(Status::no_space, "no space left to write the session database", "store.full");
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: {
      Error error(Status::unavailable, "the session database is locked by another process",
                  "store.locked");
      error.retry_after = std::chrono::milliseconds(500);
      return error;
    }
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Error(Status::forbidden, "the session database cannot be written: " + text,
                   "store.forbidden");
    case SQLITE_CANTOPEN:
      return Error(Status::unavailable, "the session database cannot be opened: " + text,
                   "store.cannot_open");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Error(Status::internal, "the session database is damaged: " + text, "store.corrupt");
    case SQLITE_CONSTRAINT:
      return Error(Status::conflict, "the session database refused a record: " + text,
                   "store.constraint");
    default:
      return Error(Status::unavailable, "the session database failed: " + text, "store.failed");
  }
}

void check(sqlite3* db, int code) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
  throw Failure{error_of(db, code)};
}

}  // namespace

Statement::~Statement() {
  sqlite3_finalize(stmt_);
}

Statement& Statement::bind(std::string_view text) {
  check(db_, sqlite3_bind_text64(stmt_, next_++, text.data(), text.size(), SQLITE_TRANSIENT,
                                 SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind(std::int64_t number) {
  check(db_, sqlite3_bind_int64(stmt_, next_++, number));
  return *this;
}

Statement& Statement::bind(const std::optional<std::string>& text) {
  if (text) return bind(std::string_view(*text));
  check(db_, sqlite3_bind_null(stmt_, next_++));
  return *this;
}

bool Statement::step() {
  errno = 0;
  const int code = sqlite3_step(stmt_);
  check(db_, code);
  return code == SQLITE_ROW;
}

void Statement::run() {
  while (step()) {
  }
}

std::string Statement::text(int column) const {
  const auto* data = sqlite3_column_text(stmt_, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(stmt_, column));
  return data == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(data), size);
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(stmt_, column);
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(stmt_, column) == SQLITE_NULL;
}

Connection::~Connection() {
  sqlite3_close_v2(db_);
}

void Connection::open(const std::string& path, std::chrono::milliseconds busy_timeout) {
  // The flag refuses links anywhere in the path, and folders may be links.
  std::error_code failed;
  const std::filesystem::path file(path);
  const auto folder =
      std::filesystem::canonical(file.parent_path().empty() ? "." : file.parent_path(), failed);
  const auto real = failed ? file : folder / file.filename();
  errno = 0;
  const int code = sqlite3_open_v2(
      real.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_NOFOLLOW,
      nullptr);
  check(db_, code);
  sqlite3_extended_result_codes(db_, 1);
  waiting_.log = real.native() + "-wal";
  waiting_.stall = busy_timeout;
  check(db_, sqlite3_busy_handler(db_, &Connection::wait_busy, &waiting_));
}

// 0: no longer. SQLite's own way looks less and less often, so that those who came last are served
// first; here all look equally often after their first few looks.
int Connection::wait_busy(void* data, int tries) noexcept {
  auto& waiting = *static_cast<Waiting*>(data);
  const auto now = Waiting::Clock::now();
  struct stat log {};
  if (::stat(waiting.log.c_str(), &log) != 0) log = {};
  const std::int64_t time_ns = log.st_mtim.tv_sec * 1'000'000'000LL + log.st_mtim.tv_nsec;
  if (tries == 0) waiting.since = now;
  if (tries == 0 || time_ns != waiting.log_time_ns || log.st_size != waiting.log_size) {
    waiting.stalled_since = now;
    waiting.log_time_ns = time_ns;
    waiting.log_size = log.st_size;
  }
  if (now - waiting.stalled_since >= waiting.stall) return 0;
  if (now - waiting.since >= waiting.stall * kLongestStalls) return 0;
  std::this_thread::sleep_for(
      std::min(kLook, std::chrono::milliseconds(1) * (1 << std::min(tries, 5))));
  return 1;
}

void Connection::execute(const char* sql) {
  errno = 0;
  check(db_, sqlite3_exec(db_, sql, nullptr, nullptr, nullptr));
}

Statement Connection::prepare(std::string_view sql) {
  sqlite3_stmt* stmt = nullptr;
  check(db_, sqlite3_prepare_v2(db_, sql.data(), static_cast<int>(sql.size()), &stmt, nullptr));
  return {db_, stmt};
}

std::int64_t Connection::changes() const {
  return sqlite3_changes64(db_);
}

void Connection::transaction(const std::function<void()>& body) {
  execute("BEGIN IMMEDIATE");
  try {
    body();
    execute("COMMIT");
  } catch (...) {
    // A full disk has rolled back already; a second ROLLBACK is then an error of no interest.
    if (sqlite3_get_autocommit(db_) == 0) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

}  // namespace sandforge::sqlite
