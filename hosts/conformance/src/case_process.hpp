// The process of a case, seen from the suite: how it is started, and what it answers.
#pragma once

#include "case.hpp"
#include "judge.hpp"

namespace sandforge::conformance {

// A folder of the suite, short, with one folder for each case below it; removed at the end.
class SuiteFolder {
 public:
  SuiteFolder();
  ~SuiteFolder();
  SuiteFolder(const SuiteFolder&) = delete;
  SuiteFolder& operator=(const SuiteFolder&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

// Leaves in the folder what the processes of cases read.
void write_request(const Request& request, std::uint64_t seed, const std::filesystem::path& folder);
struct RanCase {
  CaseResult result;
  bool unopened = false;  // see Judgement
};
// Runs the case with this number in a process of its own; blocks.
RanCase run_case(const Request& request, const Case& one, std::size_t number,
                 const std::filesystem::path& folder);

}  // namespace sandforge::conformance
