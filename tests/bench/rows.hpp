// The groups of rows, one function each. Names of rows begin with the name of their group.
#pragma once

#include <string>
#include <vector>

#include "row.hpp"

namespace sandforge::bench {

// How much is measured.
struct Scale {
  explicit Scale(bool is_quick) : quick(is_quick) {}
  // The second number for a quick look.
  int of(int full, int look) const noexcept { return quick ? look : full; }
  bool quick;
};

std::vector<Row> local_rows(const Scale& scale);
std::vector<Row> guest_rows(const Scale& scale);
std::vector<Row> boundary_rows(const Scale& scale);
std::vector<Row> load_rows(const Scale& scale);
std::vector<Row> schema_rows(const Scale& scale);
std::vector<Row> cold_rows(const Scale& scale);
std::vector<Row> runner_rows(const Scale& scale);

struct Group {
  const char* name;
  std::vector<Row> (*measure)(const Scale& scale);
};
const std::vector<Group>& groups();

}  // namespace sandforge::bench
