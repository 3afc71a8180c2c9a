#include "sandforge/posix/system.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "directory_entry.hpp"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace sandforge::posix {
namespace {

// Reads the list of open descriptors without allocating. False when /proc is not there.
bool close_listed(int first) noexcept {
  const int dir = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) return false;
  alignas(DirectoryEntry) char bytes[4096];
  for (bool again = true; again;) {
    again = false;
    // Closing while listing may skip entries, so list until nothing is left to close.
    ::lseek(dir, 0, SEEK_SET);
    for (;;) {
      const long n = ::syscall(SYS_getdents64, dir, bytes, sizeof bytes);
      if (n <= 0) break;
      for (long at = 0; at < n;) {
        const auto* entry = reinterpret_cast<const DirectoryEntry*>(bytes + at);
        at += entry->length;
        const int fd = std::atoi(entry->name);
        if (entry->name[0] == '.' || fd < first || fd == dir) continue;
        ::close(fd);
        again = true;
      }
    }
  }
  ::close(dir);
  return true;
}

std::int64_t read_clock(clockid_t clock, std::int64_t per_second) noexcept {
  struct timespec t = {};
  ::clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * per_second + t.tv_nsec / (1000000000 / per_second);
}

}  // namespace

bool call_is_absent(int error_number) noexcept {
  return error_number == ENOSYS || error_number == EPERM;
}

void close_from(int first) noexcept {
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return;
  if (close_listed(first)) return;
  struct rlimit limit = {};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY;
  const int end = known ? static_cast<int>(limit.rlim_max) : 65536;
  for (int fd = first; fd < end; ++fd)
    ::close(fd);
}

Fd open_pidfd(pid_t pid) noexcept {
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool signal_pidfd(int pidfd, int signal) noexcept {
  return ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0;
}

std::int64_t monotonic_ms() noexcept {
  return read_clock(CLOCK_MONOTONIC, 1000);
}
std::int64_t monotonic_ns() noexcept {
  return read_clock(CLOCK_MONOTONIC, 1000000000);
}
std::int64_t unix_ms() noexcept {
  return read_clock(CLOCK_REALTIME, 1000);
}

void random_bytes(void* out, std::size_t size) noexcept {
  if (::syscall(SYS_getrandom, out, size, 0) == static_cast<long>(size)) return;
  const Fd source(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  if (source && ::read(source.get(), out, size) == static_cast<ssize_t>(size)) return;
  auto* bytes = static_cast<unsigned char*>(out);
  std::uint64_t state =
      static_cast<std::uint64_t>(monotonic_ns()) ^ (static_cast<std::uint64_t>(::getpid()) << 32);
  for (std::size_t i = 0; i < size; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    bytes[i] = static_cast<unsigned char>(state >> 56);
  }
}

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0'), out;
  random_bytes(raw.data(), raw.size());
  for (const char c : raw) {
    out += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    out += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

}  // namespace sandforge::posix
