/*
 * Named cases and expectations, for a test program without any framework:
 *
 *   int main(int argc, char** argv) {
 *     return testing::run_cases(argc, argv, {{"a command runs", a_command_runs}, …});
 *   }
 */
#pragma once

#include <cstdio>
#include <functional>
#include <sstream>

#include "values.hpp"

namespace sandforge::testing {

// Ends the case when it does not hold.
inline void expect(bool holds, const std::string& what) {
  if (!holds) throw Failed(what);
}

template <class A, class B>
void expect_equal(const A& got, const B& wanted, const std::string& what) {
  if (got == wanted) return;
  std::ostringstream text;
  text << what << ": got \"" << got << "\", wanted \"" << wanted << '"';
  throw Failed(text.str());
}

struct Case {
  std::string name;
  std::function<void()> run;
};

// Runs the cases that the arguments name, or all. The exit code: 0 when none has failed, 1 when one
// has, 2 for a name that there is not.
inline int run_cases(int argc, char** argv, const std::vector<Case>& cases) {
  const std::vector<std::string> names(argv + (argc > 0 ? 1 : 0), argv + argc);
  int failed = 0;
  const auto run = [&](const Case& one) {
    try {
      one.run();
      std::printf("ok      %s\n", one.name.c_str());
    } catch (const std::exception& e) {
      std::printf("FAILED  %s\n        %s\n", one.name.c_str(), e.what());
      failed = 1;
    }
  };
  for (const std::string& name : names) {
    bool found = false;
    for (const Case& one : cases) {
      if (one.name != name) continue;
      found = true;
      run(one);
    }
    if (!found) {
      std::printf("no such case: %s\n", name.c_str());
      return 2;
    }
  }
  if (names.empty()) {
    for (const Case& one : cases)
      run(one);
  }
  return failed;
}

}  // namespace sandforge::testing
