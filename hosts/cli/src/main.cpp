#include <sys/prctl.h>

#include "cli.hpp"

int main(int argc, char** argv) {
  // Commands run as the same user: they must not read our environment and memory.
  ::prctl(PR_SET_DUMPABLE, 0);
  return sandforge::cli::cli_main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
