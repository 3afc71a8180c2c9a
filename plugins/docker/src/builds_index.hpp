// Which builds the state service keeps.
#pragma once

#include <sandforge/support/json.hpp>

#include <string>
#include <vector>

namespace sandforge::docker {

class BuildsIndex {
 public:
  BuildsIndex() {}
  std::vector<std::string> kept;     // newest first
  std::vector<std::string> dropped;  // nothing of them is to stay
};

// ended: what this process has seen end, newest first; before: the index so far, whatever it is.
BuildsIndex index_builds(const std::vector<std::string>& ended, const json::Value& before,
                         std::size_t most);

}  // namespace sandforge::docker
