#include "session/claim_owner.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include "sandforge/posix/fd.hpp"
#include "sandforge/posix/procfs.hpp"
#include "sandforge/posix/system.hpp"

namespace sandforge {
namespace {

constexpr std::int64_t kForgetForeignNs = 7LL * 24 * 3600 * 1'000'000'000;

std::string boot() {
  std::string text;
  posix::read_file("/proc/sys/kernel/random/boot_id", text, 64);
  return text.substr(0, text.find('\n'));
}

// "boot:namespace": within one of these a pid and its start time name one process.
std::string realm() {
  struct stat info {};
  const auto inode = ::stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
  return boot() + ":" + std::to_string(inode);
}

// Empty: no process.
std::string start_time(pid_t pid) {
  posix::ProcessStat found;
  return posix::Procfs().stat(pid, found) ? std::to_string(found.start_time) : std::string();
}

enum class Found : std::uint8_t {
  alive,
  gone,
  foreign,  // of another pid namespace
  unknown,  // no process of any machine that we know
};

Found look_up(const std::string& owner) {
  const auto first = owner.find('/');
  const auto second = owner.find('/', first + 1);
  if (first == std::string::npos || second == std::string::npos) return Found::unknown;
  const auto place = owner.substr(0, first);
  const auto process = owner.substr(first + 1, second - first - 1);
  const auto here = boot();
  const auto colon = process.find(':');
  // A boot has an id of 36 characters; what has none was written where there is none to compare.
  if (colon == std::string::npos || here.size() != 36 || place.find(':') != here.size())
    return Found::unknown;
  if (place.compare(0, here.size(), here) != 0) return Found::gone;
  if (place != realm()) return Found::foreign;
  pid_t pid = 0;
  const auto read = std::from_chars(process.data(), process.data() + colon, pid);
  if (read.ec != std::errc() || read.ptr != process.data() + colon || pid <= 0)
    return Found::unknown;
  const auto started = start_time(pid);
  return !started.empty() && started == process.substr(colon + 1) ? Found::alive : Found::gone;
}

}  // namespace

std::string make_claim_owner() {
  const auto pid = ::getpid();
  return realm() + "/" + std::to_string(pid) + ":" + start_time(pid) + "/" + posix::random_hex(4);
}

bool claim_owner_is_gone(const std::string& owner) {
  return look_up(owner) == Found::gone;
}

bool claim_owner_lives(const std::string& owner) {
  return look_up(owner) == Found::alive;
}

bool holder_is_gone(const std::string& holder, std::int64_t unused_ns) {
  const auto found = look_up(holder);
  return found == Found::gone || (found == Found::foreign && unused_ns > kForgetForeignNs);
}

}  // namespace sandforge
