#include "leftovers.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <vector>

#include "sandforge/posix/fd.hpp"
#include "sandforge/posix/procfs.hpp"
#include "sandforge/posix/system.hpp"
#include "sandforge/posix/tree.hpp"
#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

constexpr std::size_t kInstanceSize = 32;  // hexadecimal digits
constexpr std::int64_t kLimitMs = 3000;
constexpr long kPauseNs = 5'000'000;

bool is_instance(const std::string& text) {
  return text.size() == kInstanceSize &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Those with the mark, and everything below them, whatever it did to its environment.
std::vector<posix::Member> find(const posix::Procfs& proc, const std::string& prefix) {
  const auto all = proc.processes();
  std::vector<posix::Member> found;
  const auto add = [&](const posix::Member& m) {
    const bool known = std::any_of(found.begin(), found.end(),
                                   [&](const posix::Member& f) { return f.pid == m.pid; });
    if (!known && m.pid != ::getpid()) found.push_back(m);
  };
  std::string mark;
  for (const posix::ProcessStat& p : all) {
    if (p.state == 'Z' || !proc.environment(p.pid, kMarkName, mark) ||
        mark.compare(0, prefix.size(), prefix) != 0)
      continue;
    add({p.pid, p.start_time, p.parent});
    for (const posix::Member& below : posix::find_descendants(all, p.pid))
      add(below);
  }
  return found;
}

}  // namespace

std::string InstanceFile::left() const {
  const posix::Fd file(::openat(folder_, name_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return std::string();
  char buffer[kInstanceSize + 1];
  ssize_t n;
  do {
    n = ::read(file.get(), buffer, sizeof buffer);
  } while (n < 0 && errno == EINTR);
  const std::string text(buffer, n > 0 ? static_cast<std::size_t>(n) : 0);
  return is_instance(text) ? text : std::string();
}

bool InstanceFile::write(const std::string& instance) const {
  // A new file, so that nobody's file is written through a link.
  remove();
  const posix::Fd file(
      ::openat(folder_, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return false;
  const ssize_t n = ::write(file.get(), instance.data(), instance.size());
  return n == static_cast<ssize_t>(instance.size());
}

void InstanceFile::remove() const {
  ::unlinkat(folder_, name_.c_str(), 0);
}

bool end_leftovers(const std::string& instance) {
  const posix::Procfs proc;
  const std::string prefix = instance + ".";
  const std::int64_t limit = posix::monotonic_ms() + kLimitMs;
  for (;;) {
    const auto found = find(proc, prefix);
    if (found.empty()) return true;
    if (posix::monotonic_ms() > limit) return false;
    // All stop before any of them ends: then none forks, and none loses its parent unseen.
    for (const posix::Member& m : found)
      posix::signal_member(proc, m, SIGSTOP);
    for (const posix::Member& m : found)
      posix::signal_member(proc, m, SIGKILL);
    const struct timespec pause = {0, kPauseNs};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace sandforge::guest
