// A small owner of a SQLite connection and its statements. sqlite3.h stays in sqlite.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sandforge/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace sandforge::sqlite {

// Thrown inside the store only; its functions turn it into a Result.
struct Failure {
  Error error;
};

class Statement {
 public:
  Statement(sqlite3* db, sqlite3_stmt* stmt) : db_(db), stmt_(stmt) {}
  ~Statement();
  Statement(Statement&& other) noexcept : db_(other.db_), stmt_(other.stmt_) {
    other.stmt_ = nullptr;
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Parameters from left to right.
  Statement& bind(std::string_view text);
  Statement& bind(const std::string& text) { return bind(std::string_view(text)); }
  Statement& bind(std::int64_t number);
  Statement& bind(std::uint64_t number) { return bind(static_cast<std::int64_t>(number)); }
  Statement& bind(const std::optional<std::string>& text);

  bool step();  // true: there is a row
  void run();   // to the end

  std::string text(int column) const;
  std::int64_t integer(int column) const;
  bool is_null(int column) const;

 private:
  sqlite3* db_;
  sqlite3_stmt* stmt_;
  int next_ = 1;
};

class Connection {
 public:
  Connection() = default;
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // busy_timeout: how long a lock is waited for while whoever has it writes nothing. Others that
  // keep on writing are waited for longer: twelve times that.
  void open(const std::string& path, std::chrono::milliseconds busy_timeout);
  void execute(const char* sql);  // any number of statements, no rows
  Statement prepare(std::string_view sql);
  std::int64_t changes() const;

  // Runs body between BEGIN IMMEDIATE and COMMIT; rolls back when it throws.
  void transaction(const std::function<void()>& body);

 private:
  // Of the statement that waits for a lock.
  struct Waiting {
    using Clock = std::chrono::steady_clock;
    std::string log;  // the file that every commit writes to
    std::chrono::milliseconds stall{0};
    Clock::time_point since, stalled_since;
    std::int64_t log_time_ns = 0, log_size = 0;
  };
  static int wait_busy(void* waiting, int tries) noexcept;

  sqlite3* db_ = nullptr;
  Waiting waiting_;
};

}  // namespace sandforge::sqlite
