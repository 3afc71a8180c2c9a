#include "builds_index.hpp"

#include <algorithm>

namespace sandforge::docker {

BuildsIndex index_builds(const std::vector<std::string>& ended, const json::Value& before,
                         std::size_t most) {
  BuildsIndex out;
  const auto add = [&](const std::string& id) {
    if (std::find(out.kept.begin(), out.kept.end(), id) != out.kept.end()) return;
    (out.kept.size() < most ? out.kept : out.dropped).push_back(id);
  };
  for (const std::string& id : ended)
    add(id);
  if (before.is_array())
    for (const json::Value& id : before.as_array())
      if (id.is_string()) add(id.as_string());
  return out;
}

}  // namespace sandforge::docker
