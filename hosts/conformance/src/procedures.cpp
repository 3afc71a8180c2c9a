#include "procedure.hpp"

namespace sandforge::conformance {

const Procedures& procedures() {
  static const Procedures all = [] {
    Procedures out;
    add_background(out);
    add_builds(out);
    add_capabilities(out);
    add_checkpoints(out);
    add_commands(out);
    add_configuration(out);
    add_ends(out);
    add_environment(out);
    add_faults(out);
    add_files(out);
    add_identity(out);
    add_lifecycle(out);
    add_many(out);
    add_network(out);
    add_output(out);
    add_plugin_files(out);
    add_processes(out);
    add_retention(out);
    add_sessions(out);
    add_settings(out);
    return out;
  }();
  return all;
}

}  // namespace sandforge::conformance
