#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli.hpp"
#include "sandforge/conformance.hpp"

namespace {

// A standard descriptor that is closed would become the next file or socket that we open, and the
// command's output would go there. In its place comes one that fails as the closed one would.
void occupy_standard_descriptors() {
  for (const int descriptor : {0, 1, 2})
    while (::fcntl(descriptor, F_GETFD) < 0)
      if (::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) < 0) return;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  if (const auto code = sandforge::conformance::case_process(argc, argv)) return *code;
  // Commands run as the same user: they must not read our environment and memory.
  ::prctl(PR_SET_DUMPABLE, 0);
  return sandforge::cli::cli_main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
