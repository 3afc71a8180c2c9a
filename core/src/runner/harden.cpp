#include "runner/harden.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandforge/posix/fd.hpp"
#include "sandforge/posix/system.hpp"

namespace sandforge::runner {
namespace {

// The headers of the build machine may be older than the kernel: bits by number.
constexpr std::uint64_t kExecute = 1U << 0, kWriteFile = 1U << 1, kReadFile = 1U << 2,
                        kReadDir = 1U << 3;
constexpr std::uint64_t kChange = ((1U << 13) - 1) & ~((1U << 4) - 1);  // remove and make anything
constexpr std::uint64_t kRefer = 1U << 13, kTruncate = 1U << 14;        // of versions 2 and 3

// The shadow memory of a sanitizer is larger than any limit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitMemory = false;
#else
constexpr bool kLimitMemory = true;
#endif

// What could not be had, in words.
struct Missing {
  void add(const std::string& what) { text += (text.empty() ? "" : "; ") + what; }
  void add_failed(const char* what) { add(std::string(what) + ": " + std::strerror(errno)); }
  std::string text;
};

// For good: nobody raises it again without a capability.
void set_limit(int resource, const char* name, std::uint64_t value, Missing& missing) {
  struct rlimit limit = {};
  const auto which = static_cast<__rlimit_resource>(resource);
  bool set = ::getrlimit(which, &limit) == 0;
  if (set) {
    limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(value, limit.rlim_max);
    set = ::setrlimit(which, &limit) == 0;
  }
  if (!set) missing.add_failed(name);
}

// A link in its place is not followed: the rule would be for what somebody chose.
bool allow(int ruleset, const char* path, std::uint64_t access) {
  const posix::Fd folder(::open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return true;  // what is no folder needs no rule
  landlock_path_beneath_attr rule = {};
  rule.allowed_access = access;
  rule.parent_fd = folder.get();
  return ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

std::string landlock_failed(const char* what) {
  return std::string("Landlock: ") + what + ": " + std::strerror(errno);
}

std::string confine_files(const std::vector<std::string>& writable) {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return "the kernel has no Landlock: files are not confined";
  std::uint64_t handled = kExecute | kWriteFile | kReadFile | kReadDir | kChange;
  if (version >= 2) handled |= kRefer;
  if (version >= 3) handled |= kTruncate;
  landlock_ruleset_attr attributes = {};
  attributes.handled_access_fs = handled;
  const posix::Fd ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes,
                                                     sizeof(attributes.handled_access_fs), 0)));
  if (!ruleset) return landlock_failed("no set of rules");
  if (!allow(ruleset.get(), "/", kReadFile | kReadDir) ||
      !allow(ruleset.get(), "/dev", handled & (kReadFile | kReadDir | kWriteFile | kTruncate)))
    return landlock_failed("no rule");
  for (const std::string& folder : writable) {
    std::error_code ignored;  // what cannot be made cannot be used either, and the service says so
    std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), ignored);
    ::mkdir(folder.c_str(), 0700);
    if (!allow(ruleset.get(), folder.c_str(), handled & ~kExecute))
      return landlock_failed("no rule");
  }
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0)
    return landlock_failed("not enforced");
  return {};
}

}  // namespace

std::string harden(const Hello& hello) {
  Missing missing;
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) missing.add_failed("dumps are not refused");
  set_limit(RLIMIT_CORE, "core files are not limited", 0, missing);
  if (kLimitMemory && hello.memory_mb > 0)
    set_limit(RLIMIT_DATA, "memory is not limited", hello.memory_mb << 20, missing);
  if (hello.open_files > 0)
    set_limit(RLIMIT_NOFILE, "open files are not limited", hello.open_files, missing);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    missing.add_failed("privileges are not given up");
  } else if (!hello.may_run_programs) {  // else it has these files through its commands
    if (const std::string why = confine_files(hello.writable); !why.empty()) missing.add(why);
  }
  return missing.text;
}

}  // namespace sandforge::runner
