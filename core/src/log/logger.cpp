#include "sandforge/log.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sandforge/support/json.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge {
namespace {

constexpr std::size_t kMaxMessage = 8192;
constexpr std::size_t kMaxValue = 4096;
constexpr std::size_t kMaxFields = 32;
// Of the secrets of a record that are sought in the rest of it: the disguises of each take up to a
// thousand times its size.
constexpr std::size_t kMaxSought = 16U << 10;
constexpr std::string_view kMask = "***";

std::string timestamp(std::int64_t unix_ns) {
  std::int64_t seconds = unix_ns / 1'000'000'000;
  std::int64_t rest = unix_ns % 1'000'000'000;
  if (rest < 0) {
    rest += 1'000'000'000;
    --seconds;
  }
  const std::time_t time = seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     rest / 1'000'000);
}

std::string cut(std::string_view text, std::size_t limit, std::size_t more = 0) {
  if (text.size() > limit) more += text.size() - limit;
  std::string out = to_valid_utf8(text.substr(0, limit));
  if (more > 0) out += fmt::format("… ({} more bytes)", more);
  return out;
}

// Masked before anything is cut: a cut could leave the first half of a secret. Of what is cut off
// nothing is kept but its size.
std::string masked(const Redactor& first, const Redactor& second, std::string_view text,
                   std::size_t limit) {
  constexpr std::size_t kPiece = 16U << 10;
  RedactingStream one(first), two(second);
  std::string between, out;
  std::size_t more = 0;
  const auto settle = [&] {
    if (out.size() <= limit) return;
    more += out.size() - limit;
    out.resize(limit);
  };
  while (!text.empty()) {
    between.clear();
    one.feed(text.substr(0, kPiece), between);
    two.feed(between, out);
    settle();
    text.remove_prefix(std::min(kPiece, text.size()));
  }
  between.clear();
  one.flush(between);
  two.feed(between, out);
  two.flush(out);
  settle();
  return cut(out, limit, more);
}

// Quoted where a bare word could be misread, so that a record is always one line.
std::string bare_or_quoted(std::string_view text) {
  const bool bare = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u > 0x20 && u != 0x7f && c != '"' && c != '=' && c != '\\';
  });
  return escape_controls(bare ? std::string(text) : json::write(json::Value(text)));
}

std::string upper(std::string_view level) {
  std::string out(level);
  for (char& c : out)
    c = static_cast<char>(c - 'a' + 'A');
  return out;
}

struct Record {
  std::string message;
  std::vector<std::pair<std::string, std::string>> fields;
};

std::string text_line(const std::string& time, LogLevel level, const Record& record) {
  std::string out =
      fmt::format("{} {:<5} {}", time, upper(to_string(level)), escape_controls(record.message));
  for (const auto& [name, value] : record.fields)
    out += fmt::format(" {}={}", name, bare_or_quoted(value));
  return out + "\n";
}

std::string json_line(const std::string& time, LogLevel level, const Record& record) {
  json::Object object;
  object.set("time", time);
  object.set("level", to_string(level));
  object.set("message", record.message);
  for (const auto& [name, value] : record.fields)
    object.set(object.contains(name) ? name + "_" : name, value);
  return json::write(object) + "\n";
}

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  constexpr std::array<std::string_view, 6> names = {"debug", "debug", "info",
                                                     "warn",  "error", "off"};
  const auto index = static_cast<std::size_t>(level);
  return index < names.size() ? names[index] : "off";
}

Logger::Logger(LogSink sink, Options options)
    : sink_(std::move(sink)), options_(std::move(options)), level_(options_.level) {}

void Logger::write(LogLevel level, std::string_view message,
                   std::span<const LogField> fields) noexcept {
  if (!enabled(level) || !sink_) return;
  try {
    const std::string text = line(level, message, fields);
    const std::lock_guard lock(mutex_);
    sink_(text);
  } catch (...) {
    lost_.fetch_add(1);
  }
}

std::string Logger::line(LogLevel level, std::string_view message,
                         std::span<const LogField> fields) const {
  Redactor own;
  std::size_t sought = 0;
  for (const LogField& field : fields) {
    if (!field.secret || field.value.size() > kMaxSought - sought) continue;
    sought += field.value.size();
    own.add(field.value);
  }
  const auto shown = [&](std::string_view text, std::size_t limit) {
    return masked(own, *options_.redactor, text, limit);
  };
  Record record;
  record.message = shown(message, kMaxMessage);
  for (const LogField& field : fields.first(std::min(fields.size(), kMaxFields)))
    record.fields.emplace_back(cut(field.name, 64),
                               shown(field.secret ? kMask : field.value, kMaxValue));
  if (fields.size() > kMaxFields)
    record.fields.emplace_back("fields_cut", std::to_string(fields.size() - kMaxFields));
  const std::string time = timestamp(options_.clock->now_ns());
  return options_.format == LogFormat::json ? json_line(time, level, record)
                                            : text_line(time, level, record);
}

}  // namespace sandforge
