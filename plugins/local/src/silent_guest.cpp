#include "silent_guest.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>
#include <vector>

#include "sandforge/posix/fd.hpp"
#include "sandforge/posix/system.hpp"

namespace sandforge::local {
namespace {

constexpr int kKillTries = 500;
constexpr std::chrono::milliseconds kKillPause{10};
constexpr std::size_t kTextLimit = std::size_t{4} << 20;

// Who holds a lock on the file, by /proc/locks ("1: FLOCK ADVISORY WRITE <pid> <device>:<inode>
// …"). The number of the device is not that of stat(2) on every filesystem.
std::vector<pid_t> holders_of(ino_t inode) {
  std::vector<pid_t> out;
  std::string text;
  if (!posix::read_file("/proc/locks", text, kTextLimit)) return out;
  const std::string end = ":" + std::to_string(inode);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, file;
    pid_t pid = 0;
    if (!(words >> number >> kind >> mode >> access >> pid >> file)) continue;
    const bool same =
        file.size() > end.size() && file.compare(file.size() - end.size(), end.size(), end) == 0;
    if (kind == "FLOCK" && same && pid > 0) out.push_back(pid);
  }
  return out;
}

// The descriptor makes sure that the process that is killed is the one that was looked at.
void kill_guest(const SessionPlace& place, pid_t pid) {
  const posix::Fd process = posix::open_pidfd(pid);
  std::string command_line;
  const std::string path = "/proc/" + std::to_string(pid) + "/cmdline";
  if (!posix::read_file(path.c_str(), command_line, kTextLimit)) return;
  if (!is_guest_of(place, command_line)) return;
  // Kernels without such descriptors leave a moment between the look and the signal.
  if (process)
    posix::signal_pidfd(process.get(), SIGKILL);
  else
    ::kill(pid, SIGKILL);
}

}  // namespace

const char kSilentReason[] = "local.guest_silent";

Failure silent_guest(const SessionPlace& place) {
  return Failure{SF_TIMEOUT,
                 kSilentReason,
                 "the session's guest does not answer; stopping the session ends it",
                 place.folder(),
                 0,
                 false};
}

bool is_guest_of(const SessionPlace& place, std::string_view command_line) {
  const auto first = command_line.find('\0');
  if (first == std::string_view::npos) return false;
  std::string expected;
  for (const auto& word : guest_arguments(place))
    expected += word + '\0';
  return command_line.substr(first + 1) == expected;
}

std::optional<Failure> end_silent_guest(const SessionPlace& place) {
  if (auto failure = kill_silent_guest(place)) return failure;
  GuestConnection next;
  if (auto failure = connect_guest(place, Guest::to_end, next)) return failure;
  // It has not been given the session's environment: the next call starts the one that it needs.
  return kill_silent_guest(place);
}

std::optional<Failure> kill_silent_guest(const SessionPlace& place) {
  Descriptor folder;
  if (auto failure = open_guest_folder(place, folder)) return failure;
  if (!folder) return std::nullopt;
  struct stat st {};
  if (::fstat(folder.get(), &st) != 0)
    return system_failure(errno, "cannot look at the folder of the guest of", place.folder());
  for (int tries = 0; tries < kKillTries; ++tries) {
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) {
      // No guest serves it: whoever listens there is none. A folder in its place is removed later.
      if (::unlinkat(folder.get(), kGuestSocket, 0) != 0 && errno != ENOENT && errno != EISDIR &&
          errno != EPERM)
        return system_failure(errno, "cannot remove the socket of", place.folder());
      return std::nullopt;
    }
    if (errno != EWOULDBLOCK && errno != EINTR)
      return system_failure(errno, "cannot lock the folder of the guest of", place.folder());
    for (const pid_t pid : holders_of(st.st_ino))
      kill_guest(place, pid);
    std::this_thread::sleep_for(kKillPause);
  }
  return Failure{SF_TIMEOUT,
                 "local.guest_stays",
                 "the session's guest does not end, and cannot be found to be killed",
                 place.folder(),
                 0,
                 false};
}

}  // namespace sandforge::local
