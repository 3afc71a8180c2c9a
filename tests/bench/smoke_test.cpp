// Every row is measured and reported. How fast anything is, is not asked.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include <catch2/catch.hpp>

#include "bench/row.hpp"
#include "test_paths.hpp"

using namespace sandforge;
using namespace sandforge::bench;

namespace {

const std::vector<std::string_view> kRows = {
    "local.warm",        "local.warm.async", "local.many",          "local.many.threads",
    "local.many.memory", "local.stream",     "local.stream.memory", "guest.warm",
    "guest.stream",      "boundary.call",    "boundary.create",     "load.plugin",
    "load.many",         "load.scan",        "schema.validate",     "cold.providers",
    "runner.start",      "runner.roundtrip", "runner.waiting",      "runner.stream",
    "runner.crash"};

Row row(std::string id, double subject, double peer, Goal goal) {
  return {std::move(id), "a against b", "ms", subject, peer, goal};
}

json::Value parsed(const std::vector<Row>& rows) {
  auto result = json::parse(json::write(to_json(Conditions(), rows)));
  REQUIRE(result);
  return std::move(result.value);
}

}  // namespace

TEST_CASE("a quick run reports every row with finite numbers") {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "sandforge-smoke-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const std::string file = folder + "/rows.json";
  const std::string command =
      std::string(SANDFORGE_BENCH) + " --quick --json " + file + " >" + folder + "/table 2>&1";
  const int code = std::system(command.c_str());
  std::ostringstream table, text;
  table << std::ifstream(folder + "/table").rdbuf();
  text << std::ifstream(file).rdbuf();
  fs::remove_all(folder);
  INFO(table.str());
  REQUIRE(code == 0);
  const auto document = json::parse(text.str());
  REQUIRE(document);
  CHECK(faults_of(document.value, kRows) == std::vector<std::string>());
  for (const std::string_view id : kRows)
    CHECK(table.str().find("\n" + std::string(id) + " ") != std::string::npos);
}

TEST_CASE("a row that is missing, doubled, unknown or without numbers is a fault") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Goal goal = Goal::at_most(2, Figure::ratio);
  const auto good = row("a", 1, 1, goal);
  CHECK(faults_of(parsed({good}), {"a"}).empty());
  CHECK_FALSE(faults_of(parsed({good}), {"a", "b"}).empty());
  CHECK_FALSE(faults_of(parsed({good, good}), {"a"}).empty());
  CHECK_FALSE(faults_of(parsed({good, row("b", 1, 1, goal)}), {"a"}).empty());
  CHECK_FALSE(faults_of(parsed({row("a", nan, 1, goal)}), {"a"}).empty());
  CHECK_FALSE(faults_of(parsed({row("a", 1, 0, goal)}), {"a"}).empty());
  CHECK_FALSE(faults_of(json::Value(json::Object()), {"a"}).empty());
}

TEST_CASE("a goal bounds the subject, the ratio or the difference, from above or from below") {
  CHECK(row("a", 5, 4, Goal::at_most(1.25, Figure::ratio)).met());
  CHECK_FALSE(row("a", 5.1, 4, Goal::at_most(1.25, Figure::ratio)).met());
  CHECK(row("a", 60, 100, Goal::at_least(0.6, Figure::ratio)).met());
  CHECK_FALSE(row("a", 59, 100, Goal::at_least(0.6, Figure::ratio)).met());
  CHECK(row("a", 5, 4, Goal::at_most(1, Figure::difference)).met());
  CHECK_FALSE(row("a", 5, 4, Goal::at_most(4, Figure::subject)).met());
  CHECK_FALSE(row("a", std::nan(""), 4, Goal::at_most(4, Figure::subject)).met());
}
