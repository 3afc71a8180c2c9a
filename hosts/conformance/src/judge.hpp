// One case in this process: runs its steps and comes to a verdict.
#pragma once

#include "case.hpp"
#include "host.hpp"

namespace sandforge::conformance {

struct Judgement {
  Verdict verdict = Verdict::unverified;
  std::string reason;
  bool unopened = false;  // there is no provider to judge
};

// Once for each process: what was found is kept in findings().
Judgement judge(const Case& one, Setting setting);

}  // namespace sandforge::conformance
