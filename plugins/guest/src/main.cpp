// sandforge-guest: the supervisor of the processes in a sandbox, and the bridge to it.
#include <cstdio>

#include "daemon.hpp"
#include "options.hpp"
#include "relay.hpp"
#include "serve.hpp"

int main(int argc, char** argv) {
  using namespace sandforge::guest;
  const CommandLine line = parse_command_line(argc, argv);
  switch (line.role) {
    case Role::serve:
      return line.serve.daemon ? serve_in_background(line.serve) : serve(line.serve);
    case Role::relay:
      return relay(line.relay);
    case Role::version:
      std::puts("sandforge-guest " SANDFORGE_VERSION);
      return 0;
    case Role::help:
      std::fputs(kUsage, stdout);
      return 0;
    case Role::wrong:
      break;
  }
  std::fprintf(stderr, "sandforge-guest: %s\n%s", line.wrong.c_str(), kUsage);
  return 2;
}
