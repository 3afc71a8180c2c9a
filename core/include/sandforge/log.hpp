// Structured log: levels, fields, one line per record, secrets masked before a line leaves.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "sandforge/clock.hpp"
#include "sandforge/support/redact.hpp"

namespace sandforge {

enum class LogLevel : std::uint8_t { debug = 1, info = 2, warn = 3, error = 4, off = 5 };
std::string_view to_string(LogLevel level) noexcept;  // "debug", "info", …

enum class LogFormat : std::uint8_t { text, json };

struct LogField {
  LogField(std::string_view n, std::string_view v, bool s = false) : name(n), value(v), secret(s) {}
  std::string_view name;
  std::string_view value;
  // Masked, also where the value occurs in the rest of the record: of values of 16 KiB in all.
  bool secret = false;
};

// Takes whole lines, each with its newline, never two at once. Must not log.
using LogSink = std::function<void(std::string_view line)>;

// Writes to a descriptor that stays open, through a queue of 1 MiB: who logs never waits. What
// finds no room is lost, and the next line says so. The end waits at most 1 s for what is queued.
LogSink descriptor_sink(int descriptor);

// Thread rule: every function from any thread. A record is bounded: what exceeds 8 KiB of message,
// 4 KiB of a value or 32 fields is cut, and says so.
class Logger {
 public:
  struct Options {
    Options() {}
    LogLevel level = LogLevel::info;
    LogFormat format = LogFormat::text;
    std::shared_ptr<const Clock> clock = system_clock();
    // What no line may show; shared with whatever else must not show it. Never null.
    std::shared_ptr<Redactor> redactor = std::make_shared<Redactor>();
  };

  explicit Logger(LogSink sink, Options options = Options());
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  LogLevel level() const noexcept { return level_.load(std::memory_order_relaxed); }
  void set_level(LogLevel level) noexcept { level_.store(level, std::memory_order_relaxed); }
  bool enabled(LogLevel level) const noexcept { return level >= this->level(); }

  Redactor& redactor() const noexcept { return *options_.redactor; }

  void write(LogLevel level, std::string_view message, std::span<const LogField> fields) noexcept;
  void write(LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields = {}) noexcept {
    write(level, message, std::span<const LogField>(fields.begin(), fields.size()));
  }

  // Records that could not be written because the sink threw or memory ran out.
  std::uint64_t lost() const noexcept { return lost_.load(); }

 private:
  std::string line(LogLevel level, std::string_view message,
                   std::span<const LogField> fields) const;

  const LogSink sink_;
  const Options options_;
  std::atomic<LogLevel> level_;
  std::atomic<std::uint64_t> lost_{0};
  std::mutex mutex_;
};

}  // namespace sandforge
