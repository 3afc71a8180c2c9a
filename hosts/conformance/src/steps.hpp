// Runs the steps of a case. The language: sdk/conformance/README.md.
#pragma once

#include "case.hpp"
#include "host.hpp"

namespace sandforge::conformance {

// Findings go to findings(); throws Abandoned, Undecided, Absent, and what the host throws. A step
// that is not well formed throws Exception: invalid.
void run_steps(Host& host, const Case& one);
// The same mistakes, without a host.
void check_steps(const Case& one);

}  // namespace sandforge::conformance
