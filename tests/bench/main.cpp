// The bars that need no engine and no network, each against its peer of the same run.
//   sandforge_bench [--quick] [--json FILE] [GROUP …]
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include "rows.hpp"

namespace sandforge::bench {

const std::vector<Group>& groups() {
  static const std::vector<Group> all = {{"local", local_rows},       {"guest", guest_rows},
                                         {"boundary", boundary_rows}, {"load", load_rows},
                                         {"schema", schema_rows},     {"cold", cold_rows},
                                         {"runner", runner_rows}};
  return all;
}

namespace {

struct Arguments {
  bool quick = false;
  std::string json;
  std::vector<const Group*> chosen;
  std::string wrong;
};

const Group* group_named(const std::string& name) {
  for (const Group& group : groups())
    if (name == group.name) return &group;
  return nullptr;
}

Arguments parse(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick") {
      out.quick = true;
    } else if (word == "--json" && i + 1 < argc) {
      out.json = argv[++i];
    } else if (const Group* group = group_named(word)) {
      out.chosen.push_back(group);
    } else {
      out.wrong = word;
    }
  }
  if (out.chosen.empty())
    for (const Group& group : groups())
      out.chosen.push_back(&group);
  return out;
}

double load() {
  double now = 0;
  return ::getloadavg(&now, 1) == 1 ? now : 0;
}

int run(const Arguments& arguments) {
  Conditions conditions;
  conditions.quick = arguments.quick;
  conditions.cores = std::thread::hardware_concurrency();
  conditions.load_before = load();
  std::vector<Row> rows;
  for (const Group* group : arguments.chosen) {
    std::cerr << group->name << " …\n";
    for (Row& row : group->measure(Scale(arguments.quick)))
      rows.push_back(std::move(row));
  }
  conditions.load_after = load();
  std::cout << to_table(conditions, rows) << std::flush;
  if (arguments.json.empty()) return 0;
  std::ofstream out(arguments.json);
  out << json::write_pretty(to_json(conditions, rows));
  out.close();
  if (out) return 0;
  std::cerr << arguments.json << " cannot be written\n";
  return 1;
}

}  // namespace
}  // namespace sandforge::bench

int main(int argc, char** argv) {
  namespace bench = sandforge::bench;
  const auto arguments = bench::parse(argc, argv);
  if (!arguments.wrong.empty()) {
    std::cerr << "usage: sandforge_bench [--quick] [--json FILE] [GROUP …]; not known: "
              << arguments.wrong << "\n";
    return 2;
  }
  try {
    return bench::run(arguments);
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << "\n";
    return 1;
  }
}
