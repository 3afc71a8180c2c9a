// Everything that the tests of a plugin need: a fake host (host.hpp), a plugin driven by it
// (session.hpp, driver.hpp), and cases (cases.hpp). C++17, the standard library and POSIX alone.
#pragma once

#include "cases.hpp"
#include "session.hpp"
