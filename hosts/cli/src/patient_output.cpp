#include "patient_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

namespace sandforge::cli {
namespace {

constexpr std::chrono::seconds kStall{2};  // in which a reader takes nothing
constexpr std::chrono::seconds kLongest{10};

// Another description of the same pipe or terminal: O_NONBLOCK on the one that we were given would
// be everybody's. -1: there is none to be had, or no need.
int open_again(int descriptor) {
  struct stat found {};
  if (::fstat(descriptor, &found) != 0) return -1;
  if ((::fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY) return -1;
  if (!S_ISFIFO(found.st_mode) && ::isatty(descriptor) != 1) return -1;
  const auto path = "/proc/self/fd/" + std::to_string(descriptor);
  return ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

PatientOutput::PatientOutput() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (const int descriptor : {1, 2})
    opened_[static_cast<std::size_t>(descriptor)] = open_again(descriptor);
}

PatientOutput::~PatientOutput() {
  for (const int descriptor : {opened_[1], opened_[2], wake_})
    if (descriptor >= 0) ::close(descriptor);
}

void PatientOutput::hurry() noexcept {
  std::int64_t none = 0;
  if (!hurried_at_.compare_exchange_strong(none, Clock::now().time_since_epoch().count())) return;
  const std::uint64_t one = 1;
  const auto wrote = ::write(wake_, &one, sizeof one);
  static_cast<void>(wrote);
}

// Until when a reader is waited for that took something last at that time.
PatientOutput::Clock::time_point PatientOutput::end(Clock::time_point last) const {
  const Clock::time_point hurried{Clock::duration(hurried_at_.load())};
  if (hurried == Clock::time_point()) return Clock::time_point::max();
  return std::min<Clock::time_point>(std::max(last, hurried) + kStall, hurried + kLongest);
}

// False: patience is over. What else is wrong the write will tell.
bool PatientOutput::wait_writable(int descriptor, Clock::time_point last) const {
  for (;;) {
    const auto until = end(last);
    const bool limited = until != Clock::time_point::max();
    int wait = -1;
    if (limited) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      wait = static_cast<int>(std::max<std::int64_t>(left, 0));
    }
    pollfd waiting[2] = {{descriptor, POLLOUT, 0}, {limited ? -1 : wake_, POLLIN, 0}};
    const int ready = ::poll(waiting, 2, wait);
    if (ready < 0 ? errno != EINTR : waiting[0].revents != 0) return true;
    if (ready == 0) return false;
  }
}

bool PatientOutput::write_all(int descriptor, std::string_view data) const {
  const int again = opened_[static_cast<std::size_t>(descriptor)];
  const int to = again >= 0 ? again : descriptor;
  auto last = Clock::now();
  while (!data.empty()) {
    if (!wait_writable(to, last)) {
      errno = ECANCELED;
      return false;
    }
    // A pipe that blocks has room for this much.
    const auto piece = again >= 0 ? data : data.substr(0, PIPE_BUF);
    const auto wrote = ::write(to, piece.data(), piece.size());
    if (wrote >= 0) {
      data.remove_prefix(static_cast<std::size_t>(wrote));
      last = Clock::now();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // A terminal has room, but not for what comes next.
      if (Clock::now() >= end(last)) {
        errno = ECANCELED;
        return false;
      }
      ::poll(nullptr, 0, 10);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace sandforge::cli
