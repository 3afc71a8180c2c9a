// Where the plugins of fixtures/ lie.
#pragma once

#include <filesystem>
#include <string>

#include "test_paths.hpp"

namespace sandforge::test {

inline std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(SANDFORGE_FIXTURES) / name / (name + ".so");
}

}  // namespace sandforge::test
