#include "runner/quarantine.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandforge/posix/fd.hpp"
#include "sandforge/support/json.hpp"

namespace sandforge::runner {
namespace {

constexpr std::size_t kMaxEntry = 64U << 10;
constexpr const char* kRestartsSuffix = ".restarts";

std::string text_of(const json::Value& from, const char* name) {
  const json::Value* value = from.find(name);
  return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

std::optional<Quarantined> read_entry(const std::filesystem::path& path) {
  std::string text;
  errno = 0;
  const bool read = posix::read_file(path.c_str(), text, kMaxEntry);
  if (!read && errno == ENOENT) return std::nullopt;
  Quarantined out;
  out.sha256 = path.stem().string();
  const auto parsed = json::parse(text);
  // An entry that is damaged, or too long, or may not be read, is an entry: it says that the plugin
  // is not to run.
  if (!read || !parsed) {
    out.reason = "its entry in the quarantine is damaged";
    return out;
  }
  out.plugin = text_of(parsed.value, "plugin");
  out.path = text_of(parsed.value, "path");
  out.reason = text_of(parsed.value, "reason");
  const json::Value* at = parsed.value.find("at");
  if (at != nullptr && at->is_integer()) out.at_ns = at->as_integer();
  return out;
}

constexpr std::size_t kKeptRestarts = 16;

// A line each, appended by one write: hosts that do so at once do not disturb each other.
std::vector<std::int64_t> read_restarts(const std::filesystem::path& path) {
  std::vector<std::int64_t> out;
  std::string text;
  if (!posix::read_file(path.c_str(), text, kMaxEntry)) return out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::int64_t time = 0;
    const auto read = std::from_chars(at, end, time);
    if (read.ec == std::errc()) out.push_back(time);
    at = std::find(read.ptr, end, '\n');
    if (at != end) ++at;
  }
  return out;
}

Result<void> write_entry(const std::filesystem::path& path, const std::string& text) {
  const auto failed = [&](const char* what) {
    return Error(Status::internal,
                 fmt::format("the quarantine of a plugin cannot be kept in {}: {}: {}",
                             path.string(), what, std::strerror(errno)),
                 "plugin.quarantine");
  };
  std::error_code ec;
  std::filesystem::create_directories(path.parent_path().parent_path(), ec);
  if (::mkdir(path.parent_path().c_str(), 0700) != 0 && errno != EEXIST) return failed("folder");
  // Of a name of its own: several hosts may lose the same plugin at once.
  std::string temporary = path.string() + ".XXXXXX";
  posix::Fd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) return failed("open");
  const auto written = ::write(file.get(), text.data(), text.size());
  file.reset();
  const bool whole = written == static_cast<ssize_t>(text.size());
  if (whole && ::rename(temporary.c_str(), path.c_str()) == 0) return {};
  Result<void> out = failed(whole ? "rename" : "write");
  ::unlink(temporary.c_str());
  return out;
}

}  // namespace

Error quarantine_error(const Quarantined& entry) {
  Error error(Status::unavailable,
              fmt::format("plugin {}: is in quarantine: {}", entry.plugin, entry.reason),
              "plugin.quarantined");
  error.details.set("plugin", entry.plugin);
  error.details.set("path", entry.path);
  error.details.set("sha256", entry.sha256);
  error.details.set("hint", "sandforge plugins doctor --clear-quarantine lets it run again");
  return error;
}

std::vector<Quarantined> Quarantine::list() const {
  std::vector<Quarantined> out;
  std::error_code ec;
  if (!folder_.empty()) {
    for (std::filesystem::directory_iterator it(folder_, ec), end; !ec && it != end;
         it.increment(ec)) {
      if (it->path().extension() != ".json") continue;
      if (auto entry = read_entry(it->path())) out.push_back(std::move(*entry));
    }
    return out;
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [sha256, entry] : known_)
    out.push_back(entry);
  return out;
}

std::optional<Quarantined> Quarantine::find(const std::string& sha256) const {
  if (!folder_.empty()) return read_entry(folder_ / (sha256 + ".json"));
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(sha256);
  if (found == known_.end()) return std::nullopt;
  return found->second;
}

Result<void> Quarantine::add(const Quarantined& entry) {
  if (folder_.empty()) {
    const std::lock_guard lock(mutex_);
    known_[entry.sha256] = entry;
    return {};
  }
  json::Object out;
  out.set("plugin", entry.plugin);
  out.set("path", entry.path);
  out.set("reason", entry.reason);
  out.set("at", entry.at_ns);
  return write_entry(folder_ / (entry.sha256 + ".json"), json::write_pretty(out));
}

void Quarantine::add_restart(const std::string& sha256, std::int64_t now_ns) {
  if (folder_.empty()) return;
  const auto path = folder_ / (sha256 + kRestartsSuffix);
  // Far more than a budget allows: those of long ago go, and the last ones stay.
  const auto known = read_restarts(path);
  const bool full = known.size() >= kKeptRestarts;
  std::string lines;
  for (std::size_t i = known.size() - kKeptRestarts / 4; full && i < known.size(); ++i)
    lines += std::to_string(known[i]) + "\n";
  lines += std::to_string(now_ns) + "\n";
  std::error_code ec;
  std::filesystem::create_directories(folder_.parent_path(), ec);
  ::mkdir(folder_.c_str(), 0700);
  const posix::Fd file(::open(
      path.c_str(),
      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (full ? O_TRUNC : 0),
      0600));
  // Where it cannot be kept, the host still counts its own.
  if (file) [[maybe_unused]]
    const auto kept = ::write(file.get(), lines.data(), lines.size());
}

std::size_t Quarantine::restarts(const std::string& sha256, std::int64_t now_ns,
                                 std::chrono::nanoseconds within) const {
  if (folder_.empty()) return 0;
  const auto times = read_restarts(folder_ / (sha256 + kRestartsSuffix));
  // Of a clock that was set back nothing is known.
  return static_cast<std::size_t>(std::count_if(times.begin(), times.end(), [&](std::int64_t time) {
    return time <= now_ns && now_ns - time < within.count();
  }));
}

std::size_t Quarantine::clear() {
  if (folder_.empty()) {
    const std::lock_guard lock(mutex_);
    return std::exchange(known_, {}).size();
  }
  std::error_code ec;
  for (std::filesystem::directory_iterator it(folder_, ec), end; !ec && it != end;
       it.increment(ec)) {
    std::error_code ignored;  // they are out of date soon
    if (it->path().extension() == kRestartsSuffix) std::filesystem::remove(it->path(), ignored);
  }
  std::size_t cleared = 0;
  for (const Quarantined& entry : list()) {
    std::error_code kept;  // what could not be removed is still in the list, and not counted
    if (std::filesystem::remove(folder_ / (entry.sha256 + ".json"), kept)) ++cleared;
  }
  return cleared;
}

}  // namespace sandforge::runner
