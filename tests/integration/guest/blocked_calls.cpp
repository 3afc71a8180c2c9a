#include "blocked_calls.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <cstddef>
#include <cstdint>

namespace guest_test {
namespace {

// Calls of Linux 3.17 and later, which have the same number on every architecture from 424 on, and
// those that make a control group.
const int kCalls[] = {
    SYS_getrandom, SYS_memfd_create, SYS_mkdirat, SYS_waitid,
    424,  // pidfd_send_signal
    434,  // pidfd_open
    435,  // clone3
    436,  // close_range
    437,  // openat2
    438,  // pidfd_getfd
    439,  // faccessat2
    441,  // epoll_pwait2
#ifdef SYS_mkdir
    SYS_mkdir,
#endif
};

struct sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}

// The next instruction only for this value.
struct sock_filter unless(std::uint32_t value) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
}

struct sock_filter answer(std::uint32_t what) {
  return BPF_STMT(BPF_RET | BPF_K, what);
}

}  // namespace

bool install_filter(const BlockedCalls& blocked) {
  const std::uint32_t refuse =
      SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(blocked.error_number) & SECCOMP_RET_DATA);
  std::vector<struct sock_filter> code = {load(offsetof(struct seccomp_data, nr))};
  for (const int call : kCalls) {
    code.push_back(unless(static_cast<std::uint32_t>(call)));
    code.push_back(answer(refuse));
  }
  if (blocked.no_subreaper) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 1, 0));
    code.push_back(answer(SECCOMP_RET_ALLOW));
    code.push_back(load(offsetof(struct seccomp_data, args)));
    code.push_back(unless(PR_SET_CHILD_SUBREAPER));
    code.push_back(answer(refuse));
  }
  code.push_back(answer(SECCOMP_RET_ALLOW));
  const struct sock_fprog program = {static_cast<unsigned short>(code.size()), code.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace guest_test
