// Short forms for tests of the suite.
#pragma once

#include <catch2/catch.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sandforge/conformance.hpp"
#include "test_paths.hpp"

namespace conformance_test {

namespace conformance = sandforge::conformance;
using conformance::Verdict;

// The cases of this program run in `sandforge`, whose main knows them; Catch2's does not.
inline conformance::Request request(const char* plugin, std::vector<std::string> include = {}) {
  conformance::Request out;
  out.subject.plugin = plugin;
  out.program = SANDFORGE_PROGRAM;
  out.guest_program = std::filesystem::path(LOCAL_PLUGIN).parent_path() / "sandforge-guest";
  out.include = std::move(include);
  out.seed = 42;
  return out;
}

inline conformance::Request crooked(const std::string& fault, std::vector<std::string> include) {
  auto out = request(CROOKED_PLUGIN, std::move(include));
  out.subject.options.set("root", "${SANDFORGE_CASE_DIR}/tmp/root");
  out.subject.options.set("fault", fault);
  return out;
}

// A provider whose option `fault` makes it wrong: the case that finds it, and a part of what it
// says.
struct FaultRow {
  const char* fault;
  const char* id;
  const char* because;
};
inline void check_each_is_found(const char* plugin, const std::vector<FaultRow>& rows) {
  for (const auto& row : rows) {
    CAPTURE(row.fault);
    auto wanted = request(plugin, {row.id});
    wanted.subject.options.set("fault", row.fault);
    const auto report = conformance::run(wanted);
    REQUIRE(report.cases.size() == 1);
    CAPTURE(report.cases[0].reason);
    CHECK(report.cases[0].verdict == Verdict::fail);
    CHECK(report.cases[0].reason.find(row.because) != std::string::npos);
  }
}

}  // namespace conformance_test
