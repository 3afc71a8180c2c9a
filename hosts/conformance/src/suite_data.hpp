// The files of sdk/conformance, compiled in.
#pragma once

#include <array>

namespace sandforge::conformance {

struct SuiteFile {
  const char* name;
  const char* text;
};
extern const std::array<SuiteFile, 9> kSuiteFiles;

}  // namespace sandforge::conformance
