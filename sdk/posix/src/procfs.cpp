#include "sandforge/posix/procfs.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "directory_entry.hpp"

namespace sandforge::posix {
namespace {

constexpr std::size_t kStatLimit = 4096;
constexpr std::size_t kEnvironmentLimit = 8 * 1024 * 1024;
// Room for one entry of a process, and for one of any name.
constexpr std::size_t kOneEntry = 48;
constexpr std::size_t kAnyEntry = 512;

template <class T>
bool next_number(std::string_view& text, T& out) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  if (result.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  return true;
}

}  // namespace

bool parse_stat(std::string_view text, ProcessStat& out) {
  if (!next_number(text, out.pid)) return false;
  const std::size_t close = text.rfind(')');
  if (close == std::string_view::npos || text.size() < close + 4) return false;
  out.state = text[close + 2];
  text.remove_prefix(close + 3);
  if (!next_number(text, out.parent) || !next_number(text, out.group) ||
      !next_number(text, out.session))
    return false;
  // Fields 7 to 21 lie between the session and the start time (proc(5)).
  constexpr int threads_field = 20;
  std::int64_t value = 0, threads = 0;
  for (int field = 7; field <= 21; ++field) {
    if (!next_number(text, value)) return false;
    if (field == threads_field) threads = value;
  }
  // The state is that of the first thread.
  if (out.state == 'Z' && threads > 1) out.state = 'S';
  return next_number(text, out.start_time);
}

Procfs::Procfs() : dir_(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  // Opened and not asked about: libc asks through a newer call, and takes EPERM for the answer.
  if (dir_ && !Fd(::openat(dir_.get(), "self/stat", O_RDONLY | O_CLOEXEC))) dir_.reset();
}

bool Procfs::stat(pid_t pid, ProcessStat& out) const {
  if (!dir_) return false;
  char path[32];
  std::snprintf(path, sizeof path, "%d/stat", static_cast<int>(pid));
  std::string text;
  return read_file_at(dir_.get(), path, text, kStatLimit) && parse_stat(text, out);
}

std::vector<ProcessStat> Procfs::processes() const {
  std::vector<ProcessStat> out;
  each_pid([&](pid_t pid) {
    ProcessStat found;
    if (stat(pid, found)) out.push_back(found);
  });
  return out;
}

bool Procfs::each_pid(const std::function<void(pid_t)>& use) const {
  if (!dir_) return false;
  const Fd listing(::openat(dir_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!listing) return false;
  alignas(DirectoryEntry) char bytes[kAnyEntry];
  for (;;) {
    long n = ::syscall(SYS_getdents64, listing.get(), bytes, kOneEntry);
    if (n < 0 && errno == EINVAL) n = ::syscall(SYS_getdents64, listing.get(), bytes, sizeof bytes);
    if (n <= 0) return n == 0;
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(bytes + at);
      at += entry->length;
      if (entry->name[0] >= '1' && entry->name[0] <= '9')
        use(static_cast<pid_t>(std::atoi(entry->name)));
    }
  }
}

bool Procfs::environment(pid_t pid, std::string_view name, std::string& value) const {
  if (!dir_) return false;
  char path[32];
  std::snprintf(path, sizeof path, "%d/environ", static_cast<int>(pid));
  std::string text;
  if (!read_file_at(dir_.get(), path, text, kEnvironmentLimit)) return false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    const std::string_view entry = std::string_view(text).substr(at, end - at);
    if (entry.size() > name.size() && entry.substr(0, name.size()) == name &&
        entry[name.size()] == '=') {
      value.assign(entry.substr(name.size() + 1));
      return true;
    }
    at = end + 1;
  }
  return false;
}

bool Procfs::own_children(std::vector<pid_t>& out) const {
  out.clear();
  if (!dir_) return false;
  if (!children_) {
    char path[48];
    std::snprintf(path, sizeof path, "self/task/%d/children", static_cast<int>(::getpid()));
    children_.reset(::openat(dir_.get(), path, O_RDONLY | O_CLOEXEC));
    if (!children_) return false;
  }
  std::string text;
  char chunk[16384];
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(children_.get(), chunk, sizeof chunk, at);
    if (n < 0) return false;
    if (n == 0) break;
    text.append(chunk, static_cast<std::size_t>(n));
    at += n;
  }
  std::string_view rest = text;
  for (pid_t pid = 0; next_number(rest, pid);)
    out.push_back(pid);
  return true;
}

}  // namespace sandforge::posix
