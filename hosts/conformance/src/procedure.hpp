// What a case does where data is not enough: C++ functions by name, called by the step "call".
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "host.hpp"

namespace sandforge::conformance {

using Procedure = void (*)(Host& host);
// By name: "output.gigabyte".
using Procedures = std::map<std::string, Procedure, std::less<>>;
const Procedures& procedures();

// One for each file of procedures/.
void add_background(Procedures& to);
void add_builds(Procedures& to);
void add_capabilities(Procedures& to);
void add_checkpoints(Procedures& to);
void add_commands(Procedures& to);
void add_configuration(Procedures& to);
void add_ends(Procedures& to);
void add_environment(Procedures& to);
void add_faults(Procedures& to);
void add_files(Procedures& to);
void add_identity(Procedures& to);
void add_lifecycle(Procedures& to);
void add_many(Procedures& to);
void add_network(Procedures& to);
void add_output(Procedures& to);
void add_plugin_files(Procedures& to);
void add_processes(Procedures& to);
void add_retention(Procedures& to);
void add_sessions(Procedures& to);
void add_settings(Procedures& to);

// Calls what is declared absent. True: it was refused as UNSUPPORTED. False: there is no call for
// it. Anything else is a finding.
bool refuses(Host& host, const std::string& feature);

}  // namespace sandforge::conformance
