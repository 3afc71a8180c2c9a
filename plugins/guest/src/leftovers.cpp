#include "leftovers.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "sandforge/posix/cgroup.hpp"
#include "sandforge/posix/fd.hpp"
#include "sandforge/posix/procfs.hpp"
#include "sandforge/posix/system.hpp"
#include "sandforge/posix/tree.hpp"
#include "supervisor.hpp"

namespace sandforge::guest {
namespace {

constexpr std::size_t kInstanceSize = 32;  // hexadecimal digits
constexpr std::size_t kTextLimit = 8192;
constexpr int kMoves = 1000;
constexpr std::int64_t kLimitMs = 3000;
constexpr long kPauseNs = 5'000'000;

bool is_instance(const std::string& text) {
  return text.size() == kInstanceSize &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

void make_way(int folder, const std::string& name) {
  if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return;
  if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0) return;
  // Whoever removes the session removes that, too. A name that is taken: the next one.
  for (int i = 1; i <= kMoves; ++i) {
    const std::string beside = name + ".moved." + std::to_string(i);
    struct stat st = {};
    if (::fstatat(folder, beside.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) continue;
    if (::renameat(folder, name.c_str(), folder, beside.c_str()) == 0 || errno == ENOENT) return;
  }
}

Left InstanceFile::left() const {
  std::string text;
  Left left;
  // Commands can put anything there: a pipe would never come to its end.
  struct stat st = {};
  if (::fstatat(folder_, name_.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
      !posix::read_file_at(folder_, name_.c_str(), text, kTextLimit))
    return left;
  const std::size_t line = std::min(text.find('\n'), text.size());
  left.instance = text.substr(0, line);
  if (!is_instance(left.instance)) return Left();
  left.group = text.substr(std::min(line + 1, text.size()));
  return left;
}

bool InstanceFile::write(const Left& self) const {
  // A new file, so that nobody's file is written through a link.
  make_way(folder_, name_);
  const posix::Fd file(
      ::openat(folder_, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return false;
  const std::string text = self.instance + "\n" + self.group;
  return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

void InstanceFile::remove() const {
  ::unlinkat(folder_, name_.c_str(), 0);
}

bool end_leftovers(const Left& left) {
  // Whoever took the mark out of its environment is in the group nevertheless.
  posix::ControlGroup group;
  if (group.open(left.group, left.instance) && !group.contains_caller()) {
    group.kill_and_wait(kLimitMs);
    group.leave_and_remove();
  }
  const posix::Procfs proc;
  posix::TreeIdentity tree;
  tree.mark_name = kMarkName;
  tree.mark_value = left.instance + ".";
  tree.mark_is_prefix = true;
  const std::int64_t limit = posix::monotonic_ms() + kLimitMs;
  for (;;) {
    // All stop before any of them ends: then none forks, and none loses its parent unseen.
    posix::Pursuit pursuit(proc, ::getpid(), tree, false);
    const bool met_all = pursuit.run(limit);
    for (const posix::Member& m : pursuit.stopped())
      posix::signal_member(proc, m, SIGKILL);
    if (pursuit.stopped().empty()) return met_all || !proc;
    if (posix::monotonic_ms() > limit) return false;
    const struct timespec pause = {0, kPauseNs};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace sandforge::guest
