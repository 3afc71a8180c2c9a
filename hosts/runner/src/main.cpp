// sandforge-runner: one plugin in a process of its own, for the host behind descriptor 0.
#include "sandforge/runner.hpp"

int main() {
  return sandforge::run_plugin_runner();
}
